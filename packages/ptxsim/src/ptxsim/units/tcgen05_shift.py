"""tcgen05.shift (PTX ISA 9.7.16.9.3): rows of tensor memory move by one, in order with the thread's MMAs.

Of the 32 lanes starting at the address, lane i gets the eight columns of lane i + 1; the last keeps its own.
The text says "down" without numbering rows. That "down" is towards lane 0 follows from how shifts are used:
im2col::w::128 loads halo pixels after every 32 (5.5.5.3), and tcgen05.cp.4x256b, which follows a shift
(9.7.16.6.2), gives each 32 lanes one new row, their next pixel. Not verified on a chip.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ptxsim.events.records import Footprint, Rectangle, TensorWork
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.machine.tensor_memory import COLUMNS, LANES, split_address
from ptxsim.units.registry import unit
from ptxsim.units.tcgen05_alloc import group_of
from ptxsim.units.tcgen05_product import pair
from ptxsim.units.tensor_queue import issue

ROWS, WIDTH = 32, 8  # lanes, and columns of 32 bits


class Shift(NamedTuple):
    """The cells that an instruction moves."""

    lane: int
    column: int
    footprint: Footprint


@functools.lru_cache(maxsize=256)
def _footprint(lane: int, column: int, ranks: tuple[int, ...]) -> Footprint:
    return Footprint(ranks, cells_written=tuple(Rectangle(r, lane, ROWS, column, WIDTH) for r in ranks))


@unit("tcgen05.shift .group.down [a]", section="9.7.16.9.3", fire_and_forget=True, tensor_core=True)
def shift(instr):
    group = group_of(instr)

    def run(cluster: Cluster, split: Split, args):
        lane, column = split_address(cluster.address(split, args[0]) & 0xFFFF_FFFF)
        footprint = _footprint(lane, column, pair(group, split.cta, cluster.ctas))
        task = Shift(lane, column, footprint)
        issue(cluster, split, "tcgen05.shift", group, task, "rows move as many times", _execute)

    return run


def _execute(cluster: Cluster, work: TensorWork) -> None:
    op = work.task
    problem = _problem(cluster, op)
    if problem:
        kind = "tmem-alloc" if "allocated" in problem else "illegal"
        cluster.reporter.add(kind, "error", f"tcgen05.shift: {problem}", "", work.where)
        return
    lanes = np.arange(op.lane, op.lane + ROWS)
    cluster.bus.tensor_execute(cluster, [work])
    for rank in [] if cluster.dry else op.footprint.ranks:
        cells = cluster.tmem[rank].cells[:, op.column : op.column + WIDTH]
        cells[lanes[:-1]] = cells[lanes[1:]]


def _problem(cluster: Cluster, op: Shift) -> str:
    """The message of the finding if the shift is not possible, else ""."""
    if op.lane % ROWS or op.lane >= LANES:
        return f"lane {op.lane}; expected 0, 32, 64 or 96"
    if op.column + WIDTH > COLUMNS:
        return f"columns {op.column}..{op.column + WIDTH - 1} pass the end of tensor memory"
    for rank in op.footprint.ranks:
        if not cluster.tmem[rank].allocated(op.column, WIDTH):
            last = op.column + WIDTH - 1
            return f"columns {op.column}..{last} of CTA {rank} are not (all) allocated"
    return ""
