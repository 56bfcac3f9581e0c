"""tcgen05.shift (PTX ISA 9.7.16.9.3): rows of tensor memory move by one, in order with the thread's MMAs.

Of the 32 lanes from the address on, lane i gets the eight columns of lane i + 1; the last keeps its own.
The text says "down" and does not number rows. That this is towards lane 0 follows from what feeds it:
im2col::w::128 loads halo pixels behind every 32 (5.5.5.3), and tcgen05.cp.4x256b, which comes after a shift
(9.7.16.6.2), gives each 32 lanes one new row, their next pixel. No chip was asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxsim.machine.async_queue import Work
from ptxsim.machine.split import Location
from ptxsim.machine.tensor_memory import COLUMNS, LANES, split_address
from ptxsim.units.bulk_groups import each_lane
from ptxsim.units.registry import unit
from ptxsim.units.tcgen05_alloc import group_of

ROWS, WIDTH = 32, 8  # lanes, and columns of 32 bits
_NOTHING = np.zeros((0, 1), np.int64)  # of shared memory


@dataclass(slots=True, eq=False)
class Shift:
    """One issued instruction; named as a tcgen05.cp names its parts, since checks take it as one."""

    ranks: list[int]
    lane: int
    column: int
    where: Location
    form: tuple[str, str] = ("31x256b", "")
    packed: str = ""
    descriptor: int = 0


@unit("tcgen05.shift .group.down [a]", section="9.7.16.9.3", fire_and_forget=True)
def shift(instr):
    group = group_of(instr)

    def run(cluster, split, args):
        lane, column = split_address(cluster.address(split, args[0]) & 0xFFFF_FFFF)
        pair = [r for r in (split.cta & ~1, split.cta | 1) if r < cluster.ctas]
        if not split.alone:
            message = f"tcgen05.shift issued by {len(split.lanes)} lanes: rows move as many times"
            cluster.reporter.add("illegal", "error", message, "one elected thread issues it", split)
        for where in each_lane(split):
            op = Shift([split.cta] if group == 1 else pair, lane, column, where)
            cluster.bus.cp_issue(cluster, where, op)
            cluster.engine.submit(
                Work(("tensor", where.thread), lambda op=op: _execute(cluster, op), "tcgen05.shift")
            )

    return run


def _execute(cluster, op: Shift) -> None:
    problem = _problem(cluster, op)
    if problem:
        kind = "tmem-alloc" if "allocated" in problem else "illegal"
        cluster.reporter.add(kind, "error", f"tcgen05.shift: {problem}", "", op.where)
        return
    lanes = np.arange(op.lane, op.lane + ROWS)
    if cluster.bus.heard:
        cells = lanes[:, None], np.arange(op.column, op.column + WIDTH)
        cluster.bus.cp_execute(cluster, op, _NOTHING, cells)
    for rank in [] if cluster.dry else op.ranks:
        cells = cluster.tmem[rank].cells[:, op.column : op.column + WIDTH]
        cells[lanes[:-1]] = cells[lanes[1:]]


def _problem(cluster, op: Shift) -> str:
    """What keeps the rows from moving, "" if nothing does."""
    if op.lane % ROWS or op.lane >= LANES:
        return f"lane {op.lane}; expected 0, 32, 64 or 96"
    if op.column + WIDTH > COLUMNS:
        return f"columns {op.column}..{op.column + WIDTH - 1} pass the end of tensor memory"
    for rank in op.ranks:
        if not cluster.tmem[rank].allocated(op.column, WIDTH):
            last = op.column + WIDTH - 1
            return f"columns {op.column}..{last} of CTA {rank} are not (all) allocated"
    return ""
