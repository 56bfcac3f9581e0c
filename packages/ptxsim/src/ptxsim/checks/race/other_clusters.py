"""What the threads of a cluster know of the clusters that ran before it or run beside it (PTX ISA 8.8).

A cluster releases through a flag or counter in global memory what the releasing thread knows: its row of
clocks. A thread of a later cluster that acquires there learns this row in its current epoch, as if that were
an access of its own: who comes after that epoch knows the row too. Strong writes of a cluster come before
what follows a read of one of its flags, even one without acquire (8.9.2, 8.9.5).
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ptxsim.checks.race.clock_rows import covers, grown, joined
from ptxsim.checks.race.vector_clocks import VectorClocks
from ptxsim.isa.memory_access import Ordering

AGENT, EPOCH, ACQUIRED, ADDRESS, LENGTH, OLDER, TAG = range(7)  # columns of an event; ADDRESS: of its row
_NOTHING, _NEVER = np.zeros(0, np.int32), 1 << 62

Rows = dict[int, np.ndarray]  # tag of a cluster -> what is known of its agents


def _join(rows: Rows, tag: int, row: np.ndarray) -> bool:
    """Adds a row to what is known of a cluster; whether that is more than before."""
    more = _more(rows.get(tag), row)
    if more is not None:
        rows[tag] = more
    return more is not None


def _more(known: np.ndarray | None, row: np.ndarray) -> np.ndarray | None:
    """What both rows know; None if that is no more than the first one."""
    if known is None:
        return row
    if known is row or covers(known, row):
        return None
    return row if covers(row, known) else joined(known, row)


@dataclass
class _Learnt:
    """What a thread has learnt of one cluster, from epoch to epoch."""

    epochs: list[int] = field(default_factory=list)
    rows: list[np.ndarray] = field(default_factory=list)  # each says all that the thread knew then

    def add(self, epoch: int, row: np.ndarray) -> np.ndarray | None:
        """Adds a row; what it knows now, None if that is no more than before."""
        more = _more(self.rows[-1] if self.rows else None, row)
        if more is not None:
            self.epochs.append(epoch)
            self.rows.append(more)
        return more

    def by(self, epoch: int) -> np.ndarray | None:
        """What it knew when this epoch ended."""
        count = bisect.bisect_right(self.epochs, epoch)
        return self.rows[count - 1] if count else None


Learnt = dict[tuple[bool, int], _Learnt]  # (whether acquired, tag of a cluster) -> what a thread has learnt


@dataclass
class _Passed:
    """What a thread has passed on when it released last."""

    row: np.ndarray = field(default_factory=lambda: _NOTHING)
    rows: Rows = field(default_factory=dict)  # what it knows of other clusters


class Told(NamedTuple):
    """What threads could know of one other cluster at some time."""

    released: list[np.ndarray]  # rows that it or others released
    acquired: dict[int, np.ndarray]  # agent -> the row that it has acquired


class OtherClusters:
    """What the clusters of a launch have released, and what threads of the present one know of it."""

    def __init__(self, clusters: int):
        self.latest = np.zeros(clusters + 2, np.int32)  # tag -> its latest row of `events`; 0: none
        self.events: np.ndarray = np.zeros((64, TAG + 1), np.int64)
        self.events[0, EPOCH] = _NEVER
        self.flags: dict[int, Rows] = {}  # global place -> what was released there
        self.added: dict[int, int] = {}  # global place -> times that something was passed on there
        self.signals: dict[tuple[int, int, int], None] = {}  # (place, agent, program row) that released
        self.polled: dict[int, set[int]] = {}  # global place that loads ask for a flag -> agents that asked
        self.together = False  # whether other clusters run at the same time
        self.begin(0)

    def begin(self, now: int) -> None:
        """The cluster with tag `now` starts: its threads know of no other."""
        self.now, self.used = now, 1
        self.latest[:] = 0
        self.learnt: dict[int, Learnt] = {}  # agent -> all that it has learnt; holds the events' rows
        self.pending: dict[int, Rows] = {}  # agent -> what it has read without acquire
        self.asked: dict[int, int] = {}  # agent -> the epoch in which it read so last
        if not self.together:
            self.added = {}
        self.looked: dict[tuple[int, int, bool], int] = {}  # (agent, place, acquires) -> `added` then
        self.passed: dict[tuple[int, bool], _Passed] = {}  # (agent, whether it released by itself)

    def join(self, first: OtherClusters) -> None:
        """This cluster runs together with the one of `first`."""
        self.flags, self.added, self.together = first.flags, first.added, True
        self.signals, self.polled = first.signals, first.polled

    def read(self, clocks: VectorClocks, agent: int, place: int, how: Ordering) -> None:
        """A thread reads a flag."""
        if not how.writes:
            self.polled.setdefault(place, set()).add(agent)
        flag, key, added = self.flags.get(place), (agent, place, how.acquires), self.added.get(place, 0)
        if flag is None or self.looked.get(key) == added:
            return
        self.looked[key] = added
        others = {tag: row for tag, row in flag.items() if tag != self.now}
        if not how.acquires:
            pending, self.asked[agent] = self.pending.setdefault(agent, {}), clocks.epoch(agent)
            for tag, row in others.items():
                _join(pending, tag, row)
            if not how.writes:  # atom: who takes the last ticket has seen all others
                others = dict.fromkeys(others, _NOTHING)
        self._learn(clocks, agent, others, how.acquires)

    def fence(self, clocks: VectorClocks, agent: int, sc: bool) -> None:
        """A thread acquires what it has read so far; by .sc, also what those threads have read that it comes
        after: see `VectorClocks.fenced`.
        """
        known = clocks.clock[agent]
        for other in self.pending if sc else self.pending.keys() & {agent}:
            if other == agent or known[other] >= self.asked[other]:
                self._learn(clocks, agent, self.pending[other], True)

    def _learn(self, clocks: VectorClocks, agent: int, rows: Rows, acquired: bool) -> None:
        told, epoch = self.learnt.setdefault(agent, {}), clocks.epoch(agent)
        for tag, row in rows.items():
            known = told.get((acquired, tag))
            if known is None:
                known = told[acquired, tag] = _Learnt()
            more = known.add(epoch, row)
            if more is None:
                continue
            if self.used == len(self.events):
                self.events = np.concatenate((self.events, np.zeros_like(self.events)))
            older, address = int(self.latest[tag]), more.ctypes.data
            self.events[self.used] = agent, epoch, acquired, address, len(more), older, tag
            self.latest[tag] = self.used
            self.used += 1

    def write(self, place: int, agent: int, row: np.ndarray, released: bool, at: int) -> None:
        """A thread writes a flag by the instruction `at`, and so releases what this row knows: by itself, or
        by a fence before.
        """
        if len(row):
            self.signals[place, agent, at] = None
        flag = self.flags.setdefault(place, {})
        more = _join(flag, self.now, row) and self.together
        if self.used > 1 and len(row):
            for tag, known in self._passed_on((agent, released), row).items():
                more |= _join(flag, tag, known)
        self.added[place] = self.added.get(place, 0) + more

    def told_of(self, tag: int) -> Told:
        """What has been released of a cluster so far, and which threads of this one have acquired it."""
        released = [flag[tag] for flag in self.flags.values() if tag in flag and len(flag[tag])]
        acquired = {a: told[True, tag].rows[-1] for a, told in self.learnt.items() if (True, tag) in told}
        return Told(released, acquired)

    def _passed_on(self, by: tuple[int, bool], row: np.ndarray) -> Rows:
        """What one that knows this row has learnt of other clusters. The rows that a thread releases only
        grow.
        """
        passed = self.passed.setdefault(by, _Passed())
        for agent in {by[0], *grown(passed.row, row).tolist()} & self.learnt.keys():
            for (_, tag), learnt in self.learnt[agent].items():
                known = learnt.by(int(row[agent]))
                if known is not None:
                    _join(passed.rows, tag, known)
        passed.row = row
        return passed.rows
