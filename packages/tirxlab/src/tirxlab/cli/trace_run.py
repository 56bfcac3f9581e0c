"""One cluster of a kernel run with its timeline: what `trace`, `show` and a report draw."""

from pathlib import Path

import typer

from ptxsim.tracing import Costs
from tirxlab.cli.common import UserError, fold
from tirxlab.steps import StepError, UntouchedStep, read_text, size_text

# Without --size: the first CTA of steps 6 to 10 gets two tiles, so that write-back can overlap the next tile.
SIZES = {1: "128x128x64", 2: "128x128x512", 9: "2048x2560x512", 10: "4096x2560x512"}
SIZE = "2048x2048x512"


def built_step(path: Path, step: int, size: tuple[int, int, int]):
    """A step's Artifact, built in a confined child, as `check` does. Exits with 1 if the build fails."""
    from tirxlab.sandbox import Builder

    with Builder(read_text(path), path.name) as builder:
        built = builder.build(step, size)
    if built.kind == "file":
        raise StepError(built.message)
    if built.kind == "untouched":
        raise UntouchedStep(built.message)
    if built.kind == "misfit":
        raise UserError(f"step {step} at {size_text(size)}: {fold(built.message)}")
    if built.artifact is None:
        typer.echo(f"step {step} at {size_text(size)}: {built.message}", err=True)
        raise typer.Exit(1)
    return built.artifact


def traced_run(path: Path, step: int, size: tuple[int, int, int], order, costs: Costs, cluster: int = 0):
    """(Run of one cluster, Artifact). UserError if the size does not fit or there is no such cluster."""
    import utils

    artifact = built_step(path, step, size)
    arrays = utils.prepare_data(*size, seed=0, device="sim")
    done = run_cluster(artifact, arrays, order, costs, cluster)
    if not done.ran:
        typer.echo(utils.report(done, artifact), err=True)
        raise typer.Exit(1)
    return done, artifact


def run_cluster(artifact, arrays, order, costs: Costs, cluster: int):
    """The Run of one cluster of the grid, with its timeline. UserError if there is no such cluster."""
    from tirxlab.devices import sim

    try:
        return sim.run(artifact, arrays, order=order, trace=costs, clusters=1, first=cluster)
    except ValueError as error:
        raise UserError(f"--cluster {cluster}: {error}") from None


def ctas(done) -> str:
    """Which CTAs are drawn: `CTA 0 of 16`, `CTAs 6-7 of 148`."""
    size = 1 + max((lane.cta for lane in done.trace.lanes), default=0)
    first = done.trace.cluster * size
    name = f"CTAs {first}-{first + size - 1}" if size > 1 else f"CTA {first}"
    return f"{name} of {done.stats['grid_ctas']}"
