"""Shadow of tensor memory: last writer and readers of every column, by blocks of 16 lanes.

Records are those of checks/race/shadow_bytes.py. An access is ordered if its `usable` clock (fences included)
covers the earlier one. If only the plain clock does, the order rests on synchronisation without tcgen05.fence
(NO_TCGEN05_FENCE).
"""

from __future__ import annotations

import numpy as np

from ptxsim.checks.race.shadow_order import (  # fmt: skip
    AGENT_SHIFT,
    EPOCH_MASK,
    EPOCH_SHIFT,
    NO_TCGEN05_FENCE,
    READ_WRITE,
    WRITE_READ,
    WRITE_WRITE,
    known_epoch,
    note,
)
from ptxsim.jit.compiled import compiled
from ptxsim.machine.tensor_memory import COLUMNS, LANES

LANES_PER_BLOCK = 16
BLOCKS = LANES // LANES_PER_BLOCK
ROOM = 4  # initial room for agents that read a CTA's tensor memory


class TmemShadow:
    """Tensor memory of all CTAs of a cluster; a cell is (rank, block of lanes, column), numbered in that
    order.
    """

    def __init__(self, ctas: int):
        self.write = np.zeros(ctas * BLOCKS * COLUMNS, np.int64)
        self.reads: np.ndarray = np.zeros((ROOM, len(self.write)), np.int64)
        self.readers: list[set[int]] = [set() for _ in range(ctas)]  # agents; each has one entry per cell

    def reader(self, rank: int, agent: int) -> None:
        """Makes room for the reads of one more agent."""
        self.readers[rank].add(agent)
        if len(self.readers[rank]) > len(self.reads):
            self.reads = np.pad(self.reads, ((0, len(self.reads)), (0, 0)))

    def forget(self, cells: np.ndarray) -> None:
        self.write[cells] = 0
        self.reads[:, cells] = 0


def rectangle(rank: int, lane: int, lanes: int, column: int, columns: int) -> np.ndarray:
    """Cells of lanes [lane, lane + lanes) x columns [column, column + columns)."""
    blocks = np.arange(lane // LANES_PER_BLOCK, (lane + lanes - 1) // LANES_PER_BLOCK + 1)
    return ((rank * BLOCKS + blocks)[:, None] * COLUMNS + np.arange(column, column + columns)).reshape(-1)


def place_of(cell: int) -> tuple[int, int, int]:
    """(rank, first lane, column) of a cell."""
    block, column = divmod(cell, COLUMNS)
    rank, block = divmod(block, BLOCKS)
    return rank, block * LANES_PER_BLOCK, column


@compiled()
def enter(write, cells, me, epoch, row):
    """Makes this the last write of cells that nobody has read since the write before it."""
    record = (me << AGENT_SHIFT) | (epoch << EPOCH_SHIFT) | row
    for c in cells:
        write[c] = record


@compiled()
def missing_order(previous, me, clock, usable, threads, issued):
    """0: ordered; 1: ordered, but without tcgen05.fence; 2: not ordered.

    issued: [0] is 1 if `me` is a queue of MMAs, [q - threads] if queue q is. If both are, the earlier MMA
    only has to be issued before (the next column after its queue).
    """
    agent, epoch = previous >> AGENT_SHIFT, (previous >> EPOCH_SHIFT) & EPOCH_MASK
    if agent == me:
        return 0
    if agent >= threads:
        at = agent - threads
        if epoch <= known_epoch(usable, at):
            return 0
        if issued[0] and at < len(issued) and issued[at] and epoch <= known_epoch(usable, at + 1):
            return 0
    if epoch <= known_epoch(clock, agent):
        return 0 if agent < threads or len(usable) == 0 else 1
    return 2


@compiled()
def touch_cells(write, reads, cells, writes, me, epoch, row, clock, usable, threads, issued, out):
    """An access to tensor memory. usable: empty if the access needs no tcgen05 fence (dealloc)."""
    record = (me << AGENT_SHIFT) | (epoch << EPOCH_SHIFT) | row
    for c in cells:
        previous = write[c]
        if previous:
            gap = missing_order(previous, me, clock, usable, threads, issued)
            if gap:
                code = WRITE_WRITE if writes else WRITE_READ
                note(out, code if gap == 2 else NO_TCGEN05_FENCE, previous, 0, c, me, epoch, row)
        if writes:
            for k in range(len(reads)):
                previous = reads[k, c]
                if previous == 0:
                    break
                gap = missing_order(previous, me, clock, usable, threads, issued)
                if gap:
                    note(out, READ_WRITE if gap == 2 else NO_TCGEN05_FENCE, previous, 0, c, me, epoch, row)
                reads[k, c] = 0
            write[c] = record
        else:
            k = 0
            while reads[k, c] and reads[k, c] >> AGENT_SHIFT != me:
                k += 1
            reads[k, c] = record
