"""`./lab show S`: a step's structure as a picture: tiles, shared memory, TMEM columns, roles and barriers."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from lab_cli.common import (
    KernelsOption,
    StepArgument,
    UserError,
    kernels_file,
    output,
    parse_step,
    write_file,
)
from lab_cli.trace import SIZE, SIZES, traced_run
from ptxsim.trace.schedule import Costs
from tirxlab.steps import parse_size, size_text

CLUSTERS = 8  # whose tiles are shown


def run(
    step: StepArgument,
    size: Annotated[
        str | None, typer.Option("--size", metavar="SIZE", help="1024 or MxNxK [as for ./lab trace]")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="the picture, an .svg file [show-S.svg]")
    ] = None,
    kernels: KernelsOption = None,
    show: Annotated[bool, typer.Option("--open", help="open the picture in the browser")] = False,
) -> None:
    """Draw the structure of a step, from its compiled kernel and the record of a simulated run.

    The table names each barrier, its count, who signals it and who waits for it. The picture adds the tiles
    of the first clusters, the map of shared memory, and the columns of tensor memory.
    """
    number, path = parse_step(step), kernels_file(kernels)
    shape = parse_size(size or SIZES.get(number, SIZE))
    target = out or Path(f"show-{number}.svg")
    if target.suffix != ".svg":
        raise UserError(f"--out {target}: the name must end in .svg")
    done, artifact = traced_run(path, number, shape, "program", Costs())
    if not done.trace.finished:
        raise UserError(f"step {number} does not run to its end; ./lab check {number} says why")
    title = f"step {number} at {size_text(shape)}"
    facts, text = picture(artifact, done.trace, shape, title)
    write_file(target, text.encode())
    console = output()
    console.print(f"{title}: {facts.shared_bytes} B of shared memory", markup=False)
    console.print(barrier_table(facts))
    console.print(f"written to {target}", markup=False)
    if show:
        webbrowser.open(target.resolve().as_uri())


def picture(artifact, timeline, size: tuple[int, int, int], title: str):
    """(the facts of a kernel, its picture as SVG)."""
    import utils
    from tirxlab.picture import draw
    from tirxlab.picture.facts import structure
    from tirxlab.picture.tiles import owners

    facts = structure(artifact, timeline)
    A, B, _ = utils.prepare_data(*size, seed=0, device="sim")
    inputs = dict(zip((b.name for b in artifact.buffers), (A, B), strict=False))
    grid, cluster = count(artifact.grid), count(artifact.cluster)
    panels = [
        draw.tile_panel(owners(artifact, inputs, min(CLUSTERS, grid // cluster)), cluster),
        draw.memory_panel(facts.memory, facts.shared_bytes),
        draw.tmem_panel(facts),
        draw.barrier_panel(facts),
    ]
    return facts, draw.page(title, panels)


def count(shape: tuple[int, int, int]) -> int:
    return shape[0] * shape[1] * shape[2]


def barrier_table(facts) -> Table:
    """A row per barrier of CTA 0 and of its peers."""
    made = Table("barrier", "init", "bytes", "signalled by", "awaited by", box=None, pad_edge=False)
    several = len({agent.cta for agent in facts.agents}) > 1

    warps = {agent for agent in facts.agents if agent.roles}

    def named(agents) -> str:
        if warps == set(agents) and len(warps) > 2:
            return "all warps"
        return ", ".join(f"{agent.name} (CTA {agent.cta})" if several else agent.name for agent in agents)

    for barrier in facts.barriers:
        slots = f" x {barrier.slots}" if barrier.slots > 1 else ""
        where = f" of CTA {barrier.cta}" if several and barrier.name != "cluster_sync" else ""
        init = "-" if barrier.init is None else str(barrier.init)
        bytes_ = str(barrier.bytes or "-")
        made.add_row(
            f"{barrier.name}{slots}{where}", init, bytes_, named(barrier.signals), named(barrier.waiters)
        )
    return made
