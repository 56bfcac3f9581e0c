"""What strong writes release at a place in memory, and which of them a read acquires (PTX ISA 8.8).

If several writes in a row store the same value, a read of it cannot tell which of them it saw: in another
interleaving with the same control flow it may have been the first. So it acquires what the first one
released, unless its thread knows of a later one. A store starts a new release sequence; an atomic continues
the one of the value it found, and so does a store of a thread that has released here before.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxsim.checks.race.vector_clocks import NO_STAMP, Stamp, VectorClocks
from ptxsim.isa.memory_access import Ordering

MOST = 64  # writes of one value in a row that are kept; when full, only the next one is kept


class Write(NamedTuple):
    agent: int
    epoch: int  # of its thread, when it wrote
    stamp: Stamp  # what a read of it acquires
    narrow: bool = False  # of .cta scope


_UNKNOWN = Write(-1, 0, NO_STAMP)  # an unknown write left the value there: it releases nothing


class ReleasedPlaces:
    """The releasing writes of one cluster."""

    def __init__(self, clocks: VectorClocks):
        self.clocks = clocks
        self.writes: dict[int, list[Write]] = {}  # place -> writes of its current value, oldest first
        self.own: dict[tuple[int, int], Stamp] = {}  # (place, agent) -> what the agent released there

    def acquire(self, agent: int, place: int, how: Ordering) -> None:
        """A strong read: the thread acquires what the write that it saw released."""
        self.clocks.acquire(agent, self._read_by(agent, place, how.narrow), clock=how.acquires)

    def _read_by(self, agent: int, place: int, narrow: bool) -> Stamp | None:
        """What a read acquires. At .cta scope, what a thread of another CTA did to memory is not handed on
        (8.7.1).
        """
        writes = self.writes.get(place)
        if writes is None:
            return None
        knows = self.clocks.clock[agent]
        known = (w for w in reversed(writes[1:]) if w.agent == agent or knows[w.agent] > w.epoch)
        found = next(known, writes[0])
        size = self.clocks.per_cta
        apart = found.agent // size != agent // size and (narrow or found.narrow)
        return Stamp(NO_STAMP.clock, found.stamp.thread_clock) if apart else found.stamp

    def release(self, agent: int, place: int, how: Ordering, same: bool) -> Stamp:
        """A strong write; what it releases. same: it stores the value that the place already held."""
        atomic, releases = how.atomic, how.releases
        epoch = self.clocks.epoch(agent)
        before = self._read_by(agent, place, how.narrow) if atomic else None
        stamp = self.clocks.release(agent, clock=releases)
        for other in (before, self.own.get((place, agent))):
            stamp = stamp if other is None else stamp.joined(other)
        if releases:
            self.own[place, agent] = stamp
        write = Write(agent, epoch, stamp, how.narrow)
        if atomic or not same:
            self.writes[place] = [write]
            return stamp
        writes = self.writes.setdefault(place, [_UNKNOWN])
        if len(writes) >= MOST:
            writes.clear()
        writes.append(write)
        return stamp
