"""`./lab trace S`: the timeline of the first cluster of a run: what overlaps, who waits for what."""

import json as jsonlib
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lab_cli import trace_chart, tracks
from lab_cli.common import (
    JsonOption,
    KernelsOption,
    OrderOption,
    StepArgument,
    UserError,
    fold,
    kernels_file,
    output,
    parse_order,
    parse_step,
    print_json,
    write_file,
)
from ptxsim.trace.export import chrome, svg
from ptxsim.trace.schedule import COST_NAMES, Costs
from tirxlab.steps import builder, parse_size, size_text

# Without --size: the first CTA of steps 6 to 10 gets two tiles, so that write-back can meet the next tile.
SIZES = {1: "128x128x64", 2: "128x128x512", 9: "2048x2560x512", 10: "4096x2560x512"}
SIZE = "2048x2048x512"
MODEL = (
    "A tick is not a unit of time: the simulator has no clock. The events of the run are\n"
    "replayed with fixed costs; events that overlap were not ordered by the program.\n"
    "Arithmetic, caches and other CTAs are not included. Costs:\n"
    "{costs}"
)
COSTS = (
    "issue {issue}, latency {latency} ticks; in a tick: mma {mma} MACs, load {load} B,\n"
    "store {store} B, shared {shared} B, threads {threads} B (a warp's own accesses to global memory).\n"
    "--cost changes one."
)
WRITERS = {".json": lambda *about: jsonlib.dumps(chrome(*about)), ".svg": svg}


def run(
    step: StepArgument,
    rung: tracks.RungArgument = None,
    size: Annotated[
        str | None,
        typer.Option("--size", metavar="SIZE", help="1024 or MxNxK [two tiles per CTA where it can]"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help=".json for ui.perfetto.dev, or .svg")
    ] = None,
    cost: Annotated[
        list[str] | None,
        typer.Option(
            "--cost", metavar="NAME=N", help=f"another cost: {', '.join(COST_NAMES)}; may be repeated"
        ),
    ] = None,
    kernels: KernelsOption = None,
    order: OrderOption = "program",
    json: JsonOption = False,
) -> None:
    """Show what can run at the same time in the first CTA or cluster of a step, and who waits for what.

    The simulator has no clock: ticks order events by what waits for what; they measure nothing. Only the
    first cluster is run; ./lab check S runs all. S may be hopper or ampere, with a RUNG.
    """
    chosen, costs = parse_order(order), parse_costs(cost or [])
    check_target(out)
    if tracks.is_track(step):
        done, artifact, title = tracks.traced(step, rung, size, kernels, chosen, costs)
        number, shape = step, (*artifact.outputs[0].shape, artifact.buffers[0].shape[1])
    else:
        tracks.no_rung(rung)
        number = parse_step(step)
        shape = parse_size(size or SIZES.get(number, SIZE))
        done, artifact = traced_run(kernels_file(kernels), number, shape, chosen, costs)
        title = f"step {number} at {size_text(shape)}"
    timeline = done.trace
    if out is not None:
        write_file(out, WRITERS[out.suffix](timeline, title).encode())
    if json:
        print_json(plain(number, shape, done))
    else:
        show(timeline, f"{title}, {ctas(done)}", out)
        explain(done, artifact)
    raise typer.Exit(1 if done.verdict == "error" else 0)


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


def check_target(out: Path | None) -> None:
    if out is None:
        return
    if out.suffix not in WRITERS:
        raise UserError(f"--out {out}: the name must end in {' or '.join(WRITERS)}")
    if out.is_dir() or not out.parent.is_dir():
        raise UserError(
            f"--out {out}: {'is a folder' if out.is_dir() else f'there is no folder {out.parent}'}"
        )


def traced_run(path: Path, step: int, size: tuple[int, int, int], order, costs: Costs):
    """(Run of the first cluster, Artifact). UserError for a size that does not fit; exit 1 if not built."""
    import utils
    from tirxlab.build import BuildError, build
    from tirxlab.devices import sim
    from tirxlab.slips import BuilderError

    make = builder(path, step)
    try:
        artifact = build(make(*size))
    except (BuildError, BuilderError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except ValueError as error:
        raise UserError(f"step {step} at {size_text(size)}: {fold(str(error))}") from None
    arrays = utils.prepare_data(*size, seed=0, device="sim")
    done = sim.run(artifact, arrays, order=order, trace=costs, clusters=1)
    if not done.ran:
        typer.echo(utils.report(done, artifact), err=True)
        raise typer.Exit(1)
    return done, artifact


def show(timeline, title: str, out: Path | None) -> None:
    console = output()
    end = "" if timeline.finished else ", up to the standstill"
    console.print(f"{title}{end}", markup=False)
    # Into a file or a pipe the full width; on a terminal what fits.
    width = console.width if console.is_terminal else trace_chart.WIDTH
    for line in trace_chart.chart(timeline, width):
        console.print(line)
    console.print(trace_chart.LEGEND, markup=False)
    console.print()
    console.print(trace_chart.shares(timeline))
    for name, both in trace_chart.overlaps(timeline).items():
        console.print(
            f"{name} overlap in {both['ticks']} ticks ({both['of_mma']:.0%} of the MMAs' time)", markup=False
        )
    for note in timeline.notes:
        console.print(f"not in it: {note}", markup=False)
    console.print(MODEL.format(costs=COSTS.format(**asdict(timeline.costs))), markup=False)
    if out is not None:
        console.print(f"written to {out}", markup=False)


def ctas(done) -> str:
    """Who is drawn: `CTA 0 of 16`."""
    last = max(lane.cta for lane in done.trace.lanes)
    return f"{f'CTAs 0-{last}' if last else 'CTA 0'} of {done.stats['grid_ctas']}"


def explain(done, artifact) -> None:
    """What is wrong with the run, if anything."""
    import utils

    if done.findings:
        output().print(utils.report(done, artifact), markup=False)


def plain(step: int, size: tuple[int, int, int], done) -> dict:
    """For --json."""
    about = {"step": step, "size": size_text(size), "verdict": done.verdict, "not_checked": done.not_checked}
    return about | {"overlaps": trace_chart.overlaps(done.trace)} | asdict(done.trace)
