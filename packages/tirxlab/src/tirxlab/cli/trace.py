"""`./lab trace S`: the timeline of one cluster of a run: what overlaps, and who waits for what."""

import json as jsonlib
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ptxsim.tracing import COST_NAMES, MODELS, Costs, chrome, svg, words
from tirxlab.cli import trace_chart, tracks
from tirxlab.cli.common import (
    JsonOption,
    KernelsOption,
    OrderOption,
    StepArgument,
    UserError,
    kernels_file,
    output,
    parse_order,
    parse_step,
    print_json,
    write_file,
)
from tirxlab.cli.pictures import check_target, write_picture
from tirxlab.cli.trace_run import SIZE, SIZES, ctas, traced_run
from tirxlab.steps import parse_size, size_text

CHIP = {"sm_100a": ("a B200", 148), "sm_90a": ("an H200", 132)}  # target -> chip, how many SMs
REPLAY = (
    "A tick is not a unit of time: the simulator has no clock. The events of the run are replayed with fixed "
    "costs; events that overlap were not ordered by the program. Arithmetic, caches and other CTAs are not "
    "included. Costs: issue {issue}, latency {latency} ticks; in a tick: mma {mma} MACs, load {load} B, "
    "store {store} B, shared {shared} B, threads {threads} B (a warp's own accesses to global memory). "
    "--cost changes one."
)
SUFFIXES = (".html", ".json", ".svg", ".png")


def run(
    step: StepArgument,
    size: Annotated[
        str | None,
        typer.Argument(metavar="[SIZE]", help="1024 or MxNxK [two tiles per CTA where it can]; or a RUNG"),
    ] = None,
    size_option: Annotated[
        str | None, typer.Option("--size", metavar="SIZE", help="the same, as an option")
    ] = None,
    cluster: Annotated[
        int, typer.Option("--cluster", metavar="N", help="which cluster (or CTA) of the grid, from 0 on")
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help=".html, .json for ui.perfetto.dev, .svg or .png"),
    ] = None,
    cost: Annotated[
        list[str] | None,
        typer.Option(
            "--cost", metavar="NAME=N", help=f"another cost: {', '.join(COST_NAMES)}; may be repeated"
        ),
    ] = None,
    kernels: KernelsOption = None,
    order: OrderOption = "program",
    chip: Annotated[
        str, typer.Option("--chip", metavar="CHIP", help="b200 or h200: times as ./lab predict models them")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Show what can run at the same time in one CTA or cluster of a step, and who waits for what.

    The simulator has no clock: ticks order events by what waits for what; they measure nothing. With --chip
    the record is replayed with that chip's costs, in nanoseconds: a prediction. Only this cluster is run;
    ./lab check S runs all. S may be hopper or ampere, with a RUNG.
    """
    chosen, costs = parse_order(order), parse_costs(cost or [])
    check_target(out, SUFFIXES)
    check_chip(chip, step, cluster, cost, order)
    if tracks.is_track(step):
        done, artifact, title = tracks.traced(step, size, size_option, kernels, chosen, costs, cluster)
        number: int | str = step
        (m, n), k = artifact.outputs[0].shape, artifact.buffers[0].shape[1]
        shape = m, n, k
        path = kernels
    else:
        number, path = parse_step(step), kernels_file(kernels)
        shape = asked_size(step, size, size_option)
        done, artifact = traced_run(path, number, shape, chosen, costs, cluster)
        title = f"step {number} at {size_text(shape)}"
    if chip:
        done.trace = modelled(artifact, chip)
    title = f"{title}, {ctas(done)}" + (f", as a {chip.upper()} would" if chip else "")
    if out is not None:
        write_timeline(out, title, number, done, artifact, path)
    if json:
        print_json(plain(number, shape, done))
    else:
        show(done.trace, title, placed(done, artifact), out)
        explain(done, artifact)
    raise typer.Exit(1 if done.verdict == "error" else 0)


def asked_size(step: str, word: str | None, option: str | None) -> tuple[int, int, int]:
    """The size given as a word or as --size, else the usual one of the step."""
    if word is not None and option is not None:
        raise UserError(f"the size is given twice, as {word} and as --size {option}; once is enough")
    return parse_size(word or option or SIZES.get(parse_step(step), SIZE))


def parse_costs(texts: list[str]) -> Costs:
    """`latency=0` .. -> Costs."""
    given = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in COST_NAMES or not value.isdigit():
            raise UserError(f"{text!r} is not a cost: write NAME=N with NAME one of {', '.join(COST_NAMES)}")
        given[name] = int(value)
    try:
        return Costs(**given)
    except ValueError as error:
        raise UserError(str(error)) from None


def check_chip(chip: str, step: str, cluster: int, cost: list[str] | None, order: str) -> None:
    """UserError for an unknown chip, or for options that cannot be combined with --chip."""
    from tirxlab.forecast import CHIPS

    if chip and chip not in CHIPS:
        raise UserError(f"--chip takes {' or '.join(CHIPS)} (got {chip!r})")
    if chip and (cluster or cost or order != "program"):
        raise UserError(
            "--chip times the first cluster as a chip would: leave out --cluster, --cost and --order"
        )


def modelled(artifact, chip: str):
    """The timeline of the first cluster in nanoseconds. Exit 1, with the reason, if none can be predicted."""
    from tirxlab.forecast import NoForecast, timed

    try:
        return timed(artifact, chip)[1]
    except (NoForecast, ValueError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None


def write_timeline(out: Path, title: str, step: int | str, done, artifact, path: Path | None) -> None:
    """Writes the timeline in the format of the suffix. `path`: the kernels file, whose lines a page shows."""
    if out.suffix == ".html":
        from tirxlab.cli.report.from_trace import trace_page
        from tirxlab.cli.report.page import render

        write_file(out, render(trace_page(title, step, done, artifact, path)).encode())
    elif out.suffix == ".json":
        write_file(out, jsonlib.dumps(chrome(done.trace, title), separators=(",", ":")).encode())
    else:
        write_picture(out, svg(done.trace, title))


def show(timeline, title: str, place: str, out: Path | None) -> None:
    console = output()
    # On a terminal, as wide as it is; into a file or a pipe, $COLUMNS wide, else WIDTH.
    width = console.width if console.is_terminal else environ_width()
    console.width, console.soft_wrap = width, False
    end = "" if timeline.finished else ", up to the standstill"
    console.print(f"{title}: {words(timeline.ticks, timeline.unit)}{end}", markup=False)
    console.print(place, markup=False)
    for line in trace_chart.chart(timeline, width):
        console.print(line, no_wrap=True, crop=True)
    console.print(trace_chart.LEGEND, markup=False)
    console.print()
    console.print(trace_chart.shares(timeline))
    remarks(console, timeline)
    if out is not None:
        output().print(f"written to {out}", markup=False)


def remarks(console, timeline) -> None:
    """Prints the longest waits, what overlaps, what is not in the picture, and what the times mean."""
    unit = timeline.unit
    for line in trace_chart.longest_waits(timeline):
        console.print(f"wait: {line}", markup=False)
    for name, both in trace_chart.overlaps(timeline).items():
        console.print(
            f"{name} overlap in {words(both['ticks'], unit)} ({both['of_mma']:.0%} of the MMAs' time)",
            markup=False,
        )
    for note in timeline.notes:
        console.print(f"not in it: {note}", markup=False)
    model = REPLAY.format(**asdict(timeline.costs)) if unit == "ticks" else MODELS[unit]
    console.print(model, markup=False)


def environ_width() -> int:
    """$COLUMNS, else a width that fits a page."""
    import os

    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isdigit() and int(asked) else trace_chart.WIDTH


def placed(done, artifact) -> str:
    """Where a chip that fills its SMs in order would run it: `cluster 3 of 74: SMs 6-7 of 148, ..`."""
    from ptxsim.observing import SM_CTAS, SM_SHARED, SM_THREADS

    name, count = CHIP.get(artifact.arch, ("an H200", 132))
    x, y, z = artifact.cluster
    size, (bx, by, bz) = x * y * z, artifact.block
    by_shared = SM_SHARED // (artifact.shared_bytes + 1024)
    per_sm = max(1, min(SM_CTAS, SM_THREADS // (bx * by * bz), by_shared))
    total, number = done.stats["grid_ctas"] // size, done.trace.cluster
    at_once = count * per_sm // size
    slot = number % at_once * size % count
    sms = f"SMs {slot}-{slot + size - 1}" if size > 1 else f"SM {slot}"
    waves = f"wave {number // at_once + 1} of {-(-total // at_once)}"
    return f"cluster {number} of {total}: {sms} of {count}, {waves}, if {name} fills its SMs in order"


def explain(done, artifact) -> None:
    """Prints what is wrong with the run, if anything."""
    import utils

    if done.findings:
        output().print(utils.report(done, artifact), markup=False)


def plain(step: int | str, size: tuple[int, int, int], done) -> dict:
    """The trace as --json prints it."""
    about = {"step": step, "size": size_text(size), "verdict": done.verdict, "not_checked": done.not_checked}
    about |= {"unit": done.trace.unit, "overlaps": trace_chart.overlaps(done.trace)}
    return about | asdict(done.trace)
