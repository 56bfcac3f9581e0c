"""What strong writes release at a place in memory, and which of them a read acquires (PTX ISA 8.8).

A read that gets a value cannot tell by which of several writes in a row it came, where all wrote that value:
it may have been the first of them, in another interleaving with the same control flow. So it acquires what
that one released, unless its thread knows of a later one. A store begins anew; an atomic goes on with what it
found, and so does a store of a thread that has released here before.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxsim.checks.race.vector_clocks import NO_STAMP, Stamp, VectorClocks

MOST = 64  # writes of one value in a row that are told apart; after as many only the last counts


class Write(NamedTuple):
    agent: int
    epoch: int  # of its thread, when it wrote
    stamp: Stamp  # what a read of it acquires


_UNKNOWN = Write(-1, 0, NO_STAMP)  # whatever left the value there: nothing is released by it


class ReleasedPlaces:
    """Of one cluster."""

    def __init__(self, clocks: VectorClocks):
        self.clocks = clocks
        self.writes: dict[int, list[Write]] = {}  # place -> those of the value it holds, the first one first
        self.own: dict[tuple[int, int], Stamp] = {}  # place, agent -> what it released there

    def acquire(self, agent: int, place: int, clock: bool) -> None:
        """A strong read; clock=False: a relaxed one."""
        self.clocks.acquire(agent, self._read_by(agent, place), clock=clock)

    def _read_by(self, agent: int, place: int) -> Stamp | None:
        writes = self.writes.get(place)
        if writes is None:
            return None
        knows = self.clocks.clock[agent]
        known = (w for w in reversed(writes[1:]) if w.agent == agent or knows[w.agent] > w.epoch)
        return next(known, writes[0]).stamp

    def release(self, agent: int, place: int, releases: bool, atomic: bool, same: bool) -> None:
        """A strong write; releases=False: a relaxed one. same: of the value that the place has held."""
        epoch, before = self.clocks.epoch(agent), self._read_by(agent, place) if atomic else None
        stamp = self.clocks.release(agent, clock=releases)
        for other in (before, self.own.get((place, agent))):
            stamp = stamp if other is None else stamp.joined(other)
        if releases:
            self.own[place, agent] = stamp
        write = Write(agent, epoch, stamp)
        if atomic or not same:
            self.writes[place] = [write]
            return
        writes = self.writes.setdefault(place, [_UNKNOWN])
        if len(writes) >= MOST:
            writes.clear()
        writes.append(write)
