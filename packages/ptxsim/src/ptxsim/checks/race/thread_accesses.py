"""Loads, stores and atomics of threads, and the synchronisation by the strong ones (PTX ISA 8.8)."""

from __future__ import annotations

import functools

import numpy as np

from ptxsim.checks.race.part import Part
from ptxsim.checks.race.released_places import ReleasedPlaces
from ptxsim.events.records import Fence
from ptxsim.events.views import Cluster, Split
from ptxsim.isa.address_map import is_global
from ptxsim.isa.memory_access import ordering
from ptxsim.jit import bytecode
from ptxsim.lowering.emit import Program

_ORDERING = {"fence", "membar", "mbarrier", "cp", "tcgen05", "wgmma"}


@functools.lru_cache(maxsize=16)
def hands_over(program: Program) -> bool:
    """Whether strong accesses order anything here: relaxed ones do so only with fences, or by handing on
    what copies have signalled.
    """
    orderings = (ordering(i) for i in program.instrs)
    if any(how.acquires or how.releases for how in orderings):
        return True
    return any(i.op in _ORDERING or "async" in i.mods for i in program.by_row.values())


class ThreadAccesses(Part):
    """Part of the RaceDetector: accesses of threads to shared and global memory."""

    def __init__(self, races):
        super().__init__(races)
        self.history = races.history
        self.others = races.history.others
        self.synchronises = bool(self.history.strong.any()) and hands_over(races.launch.program)

    def start(self, cluster: Cluster) -> None:
        self.released = ReleasedPlaces(self.clocks)

    def accesses(self, cluster: Cluster, log: np.ndarray) -> None:
        """Looks a log up in pieces, cut at its strong accesses, because these synchronise. A poll that
        repeats one of the same log tells nothing new.
        """
        if not self.synchronises:
            self.history.log(log, self.clocks.clock)
            return
        at = 0
        polled: set[bytes] = set()
        for cut in np.flatnonzero(self.history.strong[log[:, bytecode.LOG_ROW]]).tolist():
            self._piece(log, at, cut)
            at, entry = cut + 1, log[cut]
            if (poll := entry.tobytes()) in polled:
                continue
            self._before_strong(entry)
            self._piece(log, cut, at)
            if self._after_strong(entry):
                polled.clear()
            else:
                polled.add(poll)
        self._piece(log, at, len(log))

    def _piece(self, log: np.ndarray, first: int, last: int) -> None:
        if first < last:
            self.history.log(log[first:last], self.clocks.clock)

    def _before_strong(self, entry) -> None:
        """A strong read may acquire what was released at its place."""
        how = self.history.orderings[int(entry[bytecode.LOG_ROW])]
        if not how.reads:
            return
        place, agent = int(entry[bytecode.LOG_PLACE]), self.clocks.agent_of(int(entry[bytecode.LOG_THREAD]))
        self.released.acquire(agent, place, how)
        if not how.near:
            self.others.read(self.clocks, agent, place, how)
            self.history.describe_others()

    def fence(self, cluster: Cluster, split: Split, fence: Fence) -> None:
        if not fence.threads:
            return
        agents = self.clocks.agents(split)
        if self.others.pending and not fence.near:
            for agent in agents.tolist():
                self.others.fence(self.clocks, agent, fence.sc)
            self.history.describe_others()
        self.clocks.fence(agents, fence.near, fence.sc)

    def _after_strong(self, entry) -> bool:
        """A strong write releases; whether it was one."""
        how = self.history.orderings[int(entry[bytecode.LOG_ROW])]
        if not how.writes:
            return False
        place, agent = int(entry[bytecode.LOG_PLACE]), self.clocks.agent_of(int(entry[bytecode.LOG_THREAD]))
        same = bool(int(entry[bytecode.LOG_SIZE]) & bytecode.LOG_SAME)
        stamp = self.released.release(agent, place, how, same)
        if is_global(place) and not how.near:
            stamp = stamp if how.releases else self.clocks.fenced(agent)
            self.others.write(place, agent, stamp.clock, how.releases, int(entry[bytecode.LOG_ROW]))
        return True
