"""`./lab compare S S..`: steps side by side at one size: resources, launch, what one run did, timelines.

With --chip only what a prediction needs is run; its time and its timeline take the place of the run's.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ptxsim.tracing import MODELS, Timeline, bands, stack, words
from tirxlab.cli import trace_chart
from tirxlab.cli.common import (
    DeviceOption,
    JsonOption,
    KernelsOption,
    UserError,
    choose_written,
    fold,
    kernels_file,
    left_out,
    output,
    parse_steps,
    print_json,
    usable_device,
)
from tirxlab.cli.pictures import check_target, write_picture
from tirxlab.cli.predict import replayer
from tirxlab.cli.trace import environ_width
from tirxlab.forecast import CHIPS, NoForecast
from tirxlab.steps import StepError, parse_size, read_text, size_text

SIDE_BY_SIDE = 4  # steps in a table, so that it fits on 80 columns
# Rows of the table -> how to get them from an artifact, a run and a forecast.
OF_KERNEL: dict[str, Callable] = {
    "CTAs": lambda artifact: math.prod(artifact.grid),
    "CTAs in a cluster": lambda artifact: math.prod(artifact.cluster),
    "threads in a CTA": lambda artifact: math.prod(artifact.block),
    "registers a thread": lambda artifact: artifact.registers,
    "bytes spilled": lambda artifact: artifact.spills,
    "dynamic shared bytes": lambda artifact: artifact.shared_bytes,
}
OF_RUN: dict[str, Callable] = {
    "verdict": lambda run: run.verdict,
    "warp instructions": lambda run: run.stats.get("warp_instructions", "-"),
    "bytes by TMA": lambda run: run.stats.get("tma_bytes", "-"),
    "tensor operations": lambda run: run.stats.get("tensor_operations", "-"),
}
OF_FORECAST: dict[str, Callable] = {
    "predicted ms": lambda forecast: forecast.ms,
    "TFLOP/s": lambda forecast: round(forecast.tflops, 1),
    "bound by": lambda forecast: forecast.bound,
    "tensor cores busy": lambda forecast: f"{forecast.tensor_busy:.0%}",
}


@dataclass
class Measured:
    """The column and timeline of one step."""

    column: dict  # of the table
    timeline: Timeline | None  # of the first cluster; None on a GPU, or where no time is predicted
    why: str = ""  # why no time is predicted


def run(
    steps: Annotated[list[str], typer.Argument(metavar="S S..", help="two steps or more, or all")],
    size: Annotated[str, typer.Option("--size", metavar="SIZE", help="1024 or MxNxK")] = "1024",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="the timelines as .svg or .png")
    ] = None,
    kernels: KernelsOption = None,
    device: DeviceOption = None,
    chip: Annotated[
        str, typer.Option("--chip", metavar="CHIP", help="b200 or h200: times as ./lab predict models them")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Put steps side by side at one size: resources, launch shape, what a run did, and its time on a GPU.

    On the simulator the timelines of the first CTAs (or clusters) follow, on one axis. With --chip they are
    in microseconds of that chip, predicted; the kernels are not run then.
    """
    if chip and chip not in CHIPS:
        raise UserError(f"--chip takes {' or '.join(CHIPS)} (got {chip!r})")
    if chip and device:
        raise UserError("--chip predicts and runs nothing: leave out --device")
    path, shape = kernels_file(kernels), parse_size(size)
    check_target(out)
    asked = list(dict.fromkeys(number for text in steps for number in parse_steps(text)))
    if len(asked) < 2:
        raise UserError("compare takes two different steps or more, for example ./lab compare 7 8")
    numbers, left = choose_written(path, asked)
    device = "sim" if chip else usable_device(device)
    if out is not None and device != "sim":
        raise UserError("--out: timelines are drawn from simulated runs; add --device sim")
    artifacts = built(path, numbers, shape, left)
    read = predicted if chip else measure
    made = {number: read(artifact, shape, chip or device) for number, artifact in artifacts.items()}
    if out is not None:
        write_picture(out, stack(titled(made)))
    if json:
        columns = {number: one.column for number, one in made.items()}
        print_json({"size": size_text(shape), "chip": chip or None, "steps": columns, "not_run": left})
        return
    show(made, shape, left)
    if out is not None:
        output().print(f"written to {out}", markup=False)


def show(made: dict[int, Measured], shape: tuple[int, int, int], left: dict[int, str]) -> None:
    """Prints the tables, the timelines, and which steps are not in them."""
    output().print(f"at {size_text(shape)}", markup=False)
    numbers = list(made)
    for first in range(0, len(numbers), SIDE_BY_SIDE):
        some = numbers[first : first + SIDE_BY_SIDE]
        output().print(table({n: made[n].column for n in some}))
    draw(titled(made))
    for number, one in made.items():
        if one.why:
            output().print(f"step {number}: {one.why}", markup=False)
    if left:
        output().print(left_out(left), markup=False)


def titled(made: dict[int, Measured]) -> list[tuple[str, Timeline]]:
    return [(f"step {number}", one.timeline) for number, one in made.items() if one.timeline]


def draw(runs: list[tuple[str, Timeline]]) -> None:
    """Prints charts below each other, to the scale of the longest."""
    if not runs:
        return
    console = output()
    width = console.width if console.is_terminal else environ_width()
    console.width, console.soft_wrap = width, False
    end, unit = max(timeline.ticks for _, timeline in runs), runs[0][1].unit
    console.print()
    left = max(trace_chart.label_width(bands(timeline), width) for _, timeline in runs)
    console.print(trace_chart.axis(end, unit, left, width), no_wrap=True, crop=True)
    for title, timeline in runs:
        stuck = "" if timeline.finished else ", up to the standstill"
        console.print(f"{title}: first CTA or cluster, {words(timeline.ticks, unit)}{stuck}", markup=False)
        for line in trace_chart.lines(timeline, width, end, left):
            console.print(line, no_wrap=True, crop=True)
    console.print(f"{trace_chart.LEGEND}\n{MODELS[unit]}", markup=False)
    if unit == "ticks":
        named = " ".join(title.removeprefix("step ") for title, _ in runs)
        console.print(f"Predicted times: ./lab compare {named} --chip b200", markup=False)


def table(columns: dict[int, dict]) -> Table:
    """Steps side by side."""
    made = Table("", *(f"step {number}" for number in columns), box=None, pad_edge=False)
    for column in made.columns[1:]:
        column.justify = "right"
    for name in next(iter(columns.values())):
        made.add_row(name, *(cell(column[name]) for column in columns.values()))
    return made


def built(path: Path, numbers: list[int], size: tuple[int, int, int], left: dict[int, str]) -> dict:
    """Step -> its Artifact, built in a confined child; steps that do not take the size go to `left`.

    UserError if a step is not built, or none takes the size.
    """
    from tirxlab.sandbox import Builder

    artifacts = {}
    with Builder(read_text(path), path.name) as builder:
        for number in numbers:
            done = builder.build(number, size)
            if done.kind == "file":
                raise StepError(done.message)
            if done.artifact is not None:
                artifacts[number] = done.artifact
            elif done.kind == "misfit":
                left[number] = f"at {size_text(size)}: {done.message}"
            else:
                raise UserError(f"step {number} is not built: {fold(done.message)}")
    if not artifacts:
        raise UserError(f"step {numbers[0]} {left[numbers[0]]}")
    return artifacts


def measure(artifact, size: tuple[int, int, int], device: str) -> Measured:
    """The column of a step from one run; on the simulator also the timeline of its first cluster."""
    import utils

    data, simulated = utils.prepare_data(*size, seed=0, device=device), device == "sim"
    run, _ = utils.launch(artifact, *data, device=device, trace=simulated)
    column = of_kernel(artifact) | {name: read(run) for name, read in OF_RUN.items()}
    ms = None if simulated else utils.benchmark(artifact, *size, device=device)[0]
    return Measured(column | {"milliseconds": ms if ms is not None else "not measured"}, run.trace)


def of_kernel(artifact) -> dict:
    return {name: read(artifact) for name, read in OF_KERNEL.items()}


def predicted(artifact, size: tuple[int, int, int], chip: str) -> Measured:
    """The column and timeline that are predicted for a chip; nothing is measured."""
    try:
        with replayer() as forecast:
            found, timeline = forecast(artifact, chip, 2.0 * math.prod(size))
    except NoForecast as error:
        return Measured(of_kernel(artifact) | dict.fromkeys(OF_FORECAST, "-"), None, str(error))
    return Measured(of_kernel(artifact) | {name: read(found) for name, read in OF_FORECAST.items()}, timeline)


def cell(value) -> str:
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)
    )
