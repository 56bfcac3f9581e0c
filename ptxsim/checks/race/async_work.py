"""Asynchronous work between its issue and its completion, and how it is looked up in the shadows.

It comes after all that its issuer knew when it issued it, and nobody comes after it but who learned of its
completion: through the mbarrier it reports to, a commit, or a wait for its group.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from ptxsim.checks.race.handshakes import Handshakes
from ptxsim.checks.race.proxy_fences import SHARED
from ptxsim.checks.race.shadow_bytes import ASYNC, touch_ranges
from ptxsim.checks.race.vector_clocks import Stamp

REMEMBERED = 64  # transfers per queue whose coordinates a report can still give


@dataclass(eq=False)
class Issued:
    """A piece of asynchronous work between its issue and its completion."""

    kind: str  # "load", "store", "mma", "commit", "cp.async"
    row: int  # of the instruction
    thread: int  # agent that issued it
    clock: np.ndarray
    known: np.ndarray  # of the issuer, for whoever learns of the completion
    usable: np.ndarray
    queue: int = -1  # agent that it acts as
    epoch: int = 0
    flags: int = ASYNC
    tmap: object = None
    start: tuple = ()
    ranks: list = field(default_factory=list)  # CTAs whose shared memory a load fills
    bars: dict = field(default_factory=dict)  # rank -> barrier that its bytes reach
    logs: tuple = ()

    def stamp(self) -> Stamp:
        return Stamp(self.clock, self.known)


class AsyncWork(Handshakes):
    """Observer part of Races: what all hardware units share."""

    def start_units(self) -> None:
        self.mmas: dict[int, Issued] = {}
        self.tmem_pending: dict[tuple, deque] = {}
        self.tmem_latest: dict[tuple, Issued] = {}
        self.transfers: dict[int, deque] = {}  # queue -> (epoch, Issued), for reports: copies and MMAs
        self.open_results: dict[tuple, list] = {}
        self.is_mma = np.zeros(1, np.int8)
        self.copies = np.zeros(self.threads, np.int64)
        self.initialised: dict[tuple, int] = {}  # (place, warp) -> lanes that come after the barrier's init
        self.early: dict[str, object] = {}  # findings: barriers used before their init is visible
        self.commits: dict[int, list] = {}  # queue -> (epoch, barrier places) of its commits

    def _issue(self, kind: str, split, lane: int | None = None) -> Issued:
        thread = self.lane_row(split, split.leader if lane is None else lane)
        known = self.known[thread].copy()
        clock, usable = self.snapshot(thread)
        return Issued(kind, split.row, thread, clock, known, usable)

    def _ranges(self, space: str, starts: np.ndarray, size: int, write: bool, op: Issued) -> None:
        """One look-up of equal ranges for an asynchronous access."""
        who = (self.now, op.queue, op.epoch, op.row, op.flags, op.clock, *self.common(space))
        at = 0
        while at < len(starts):
            shadow = self.shared if space == SHARED else self.memory
            at = touch_ranges(*shadow, starts, size, at, int(write), *who)
            if at < len(starts):
                self.grow()
        self.collect(space, op.clock, op)

    def _remember(self, op: Issued) -> None:
        self.transfers.setdefault(op.queue, deque(maxlen=REMEMBERED)).append((op.epoch, op))

    def transfer_of(self, queue: int, epoch: int, row: int, other: Issued | None = None) -> Issued | None:
        """The transfer or MMA behind an epoch of a queue, if it is recent and not `other`."""
        found = reversed(self.transfers.get(queue, ()))
        return next((op for at, op in found if at == epoch and op.row == row and op is not other), None)


def runs_of(index: np.ndarray, base: int) -> tuple[np.ndarray, int]:
    """Chunks of 16 bytes as equal byte ranges: (starts, size)."""
    chunks = np.unique(index.reshape(-1)).astype(np.int64)
    breaks = np.flatnonzero(np.diff(chunks) != 1) + 1
    lengths = np.diff(np.concatenate([[0], breaks, [len(chunks)]]))
    if (lengths == lengths[0]).all():
        return chunks[np.concatenate([[0], breaks]).astype(np.int64)] * 16 + base, int(lengths[0]) * 16
    return chunks * 16 + base, 16
