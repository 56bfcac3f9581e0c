"""Asynchronous work between its issue and its completion.

The work comes after everything its issuer knew at issue. Only accesses of agents that have learned of its
completion come after it: through the mbarrier it reports to, a commit, or a wait for its group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ptxsim.checks.race.shadow_order import ASYNC
from ptxsim.checks.race.tma_ranges import spans_from
from ptxsim.checks.race.vector_clocks import VectorClocks
from ptxsim.events.records import BulkCopy, SharedSpan
from ptxsim.events.views import Split

REMEMBERED = 64  # transfers per queue whose coordinates a report can still give


@dataclass(eq=False, slots=True)
class Issued:
    """A piece of asynchronous work between its issue and its completion."""

    kind: str  # "load", "store", "mma", "commit", "cp.async"
    row: int  # of the instruction
    thread: int  # agent that issued it
    clock: np.ndarray  # the issuer's three clocks at issue
    thread_clock: np.ndarray  # handed to those who learn of the completion
    tcgen05_clock: np.ndarray
    queue: int = -1  # agent that it acts as
    epoch: int = 0
    flags: int = ASYNC
    copy: BulkCopy | None = None
    stores: int = 0  # stores that threads of the cluster had made at issue
    columns: tuple[int, int] | None = None  # columns of tensor memory that an MMA writes: from, to
    descriptors: tuple[int, ...] = ()  # matrix descriptors of an MMA
    works: Sequence = ()  # MMAs that read shared memory as one, of which it is the last
    at: int = -1  # steps on barriers before its issue; -1: not noted
    map_clock: np.ndarray | None = None  # what its read of a tensor map in global memory comes after

    @classmethod
    def of(cls, kind: str, split: Split, clocks: VectorClocks) -> Issued:
        """Work that the leader of a split issues now."""
        thread = clocks.agent_of(split.thread)
        return cls(kind, split.row, thread, *clocks.snapshot(thread), at=len(clocks.steps))

    def of_map(self) -> Issued:
        """The work's read of its tensor map, which needs no fence of the async proxy."""
        assert self.map_clock is not None
        return replace(self, clock=self.map_clock, flags=0)


class Transfers:
    """The latest copies and MMAs of each queue of a cluster, and its commits, for reports."""

    def __init__(self):
        self.of_queue: dict[int, deque[tuple[int, Issued]]] = {}  # its works, by epoch
        self.commits: dict[int, list] = {}  # queue -> (epoch, barrier places) of its commits
        self.begun: dict[
            int, list[int]
        ] = {}  # queue -> epochs of MMAs that overwrite their result, and so begin a product

    def works_of(self, queue: int) -> Iterable[tuple[int, Issued]]:
        """The latest works of a queue, with their epochs."""
        return self.of_queue.get(queue, ())

    def remember(self, op: Issued) -> None:
        known = self.of_queue.get(op.queue)
        if known is None:
            known = self.of_queue[op.queue] = deque(maxlen=REMEMBERED)
        known.append((op.epoch, op))

    def find(self, queue: int, epoch: int, row: int, other: Issued | None = None) -> Issued | None:
        """The transfer or MMA of a queue with this epoch and row, if it is recent and not `other`."""
        return next((op for op in self.all_of(queue, epoch, row) if op is not other), None)

    def known(self) -> list[Issued]:
        """The recent ones of all queues."""
        return [op for known in self.of_queue.values() for _, op in known]

    def all_of(self, queue: int, epoch: int, row: int) -> list[Issued]:
        """The recent ones of a queue with this epoch and row, the last first."""
        known = self.of_queue.get(queue, deque())
        return [op for at, op in reversed(known) if at == epoch and op.row == row]


def byte_ranges(span: SharedSpan, window: int) -> np.ndarray:
    """The bytes of a span as `spans_of` gives them, with the windows of the CTAs laid out one after
    another.
    """
    base = span.rank * window
    if span.inside:
        return np.array([[base + span.first, base + span.last + 1]])
    return spans_of(span.chunks, base)


def spans_of(chunks: np.ndarray, base: int = 0) -> np.ndarray:
    """Chunks of 16 bytes, given by number, as disjoint spans of bytes, offset by `base`: int64 (n, 2)."""
    return spans_from(chunks.reshape(-1).astype(np.int64) * 16 + base, 16)
