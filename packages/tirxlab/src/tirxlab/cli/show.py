"""`./lab show S`: a step's structure as a picture: tiles, shared memory, TMEM columns, roles and barriers."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ptxsim.tracing import Costs
from tirxlab.cli.common import (
    KernelsOption,
    StepArgument,
    UserError,
    kernels_file,
    output,
    parse_step,
    write_file,
)
from tirxlab.cli.pictures import check_target
from tirxlab.cli.trace_run import SIZE, SIZES, ctas, traced_run
from tirxlab.steps import parse_size, size_text


def run(
    step: StepArgument,
    size: Annotated[
        str | None, typer.Option("--size", metavar="SIZE", help="1024 or MxNxK [as for ./lab trace]")
    ] = None,
    cluster: Annotated[
        int, typer.Option("--cluster", metavar="N", help="the cluster that is recorded; its tiles are framed")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="the picture, an .svg file [show-S.svg]")
    ] = None,
    kernels: KernelsOption = None,
    show: Annotated[bool, typer.Option("--open", help="open the picture in the browser")] = False,
) -> None:
    """Draw the structure of a step, from its compiled kernel and the record of a simulated run.

    The table lists each barrier, its count, who signals it and who waits for it. The picture adds which
    cluster (or CTA) writes which tile, the map of shared memory, and the columns of tensor memory.
    """
    number, path = parse_step(step), kernels_file(kernels)
    shape = parse_size(size or SIZES.get(number, SIZE))
    target = out or Path(f"show-{number}.svg")
    check_target(target, (".svg",))
    done, artifact = traced_run(path, number, shape, "program", Costs(), cluster)
    if not done.trace.finished:
        raise UserError(f"step {number} does not run to its end; ./lab check {number} says why")
    title = f"step {number} at {size_text(shape)}, {ctas(done)}"
    facts, owner, text = picture(artifact, done.trace, shape, title)
    write_file(target, text.encode())
    console = output()
    console.print(f"{title}: {facts.shared_bytes} B of shared memory", markup=False)
    console.print(tiles_text(owner, artifact), markup=False)
    console.print(barrier_table(facts))
    console.print(f"written to {target}", markup=False)
    if show:
        webbrowser.open(target.resolve().as_uri())


def picture(artifact, timeline, size: tuple[int, int, int], title: str):
    """(the facts of a recorded cluster, the writer of each cell of D, the picture as SVG)."""
    import utils
    from tirxlab.explain.picture import draw
    from tirxlab.explain.picture.facts import structure
    from tirxlab.explain.picture.tiles import owners, stored

    facts = structure(artifact, timeline)
    A, B, _ = utils.prepare_data(*size, seed=0, device="sim")
    inputs = dict(zip((b.name for b in artifact.buffers), (A, B), strict=False))
    owner, order = owners(artifact, inputs), stored(timeline, artifact.outputs[0].name)
    panels = [
        draw.tile_panel(owner, count(artifact.cluster), chosen=timeline.cluster, order=order),
        draw.memory_panel(facts.memory, facts.shared_bytes),
        draw.tmem_panel(facts),
        draw.barrier_panel(facts),
    ]
    return facts, owner, draw.page(title, panels)


def tiles_text(owner, artifact) -> str:
    """`D: 256 cells of 128x128, written by 148 of 148 CTAs, 1 to 2 each`."""
    import numpy as np

    from tirxlab.explain.picture.tiles import CELL

    numbers, cells = np.unique(owner[owner >= 0], return_counts=True)
    per = count(artifact.cluster)
    what, every = "CTA" if per == 1 else "cluster", count(artifact.grid) // per
    each = f"{cells.min()} to {cells.max()}" if len(set(cells)) > 1 else f"{cells.max(initial=0)}"
    said = f"written by {len(numbers)} of {every} {what}{'s' * (every > 1)}, {each} each"
    missing = int((owner < 0).sum())
    lost = f"; {missing} by none" if missing else ""
    return f"D: {owner.size} cell{'s' * (owner.size > 1)} of {CELL}x{CELL}, {said}{lost}"


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
