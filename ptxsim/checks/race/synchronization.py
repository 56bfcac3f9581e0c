"""Synchronisation of threads: which clocks a barrier, an mbarrier, a fence of tensor memory joins."""

from __future__ import annotations

import numpy as np

from ptxsim.checks.observer import Observer
from ptxsim.checks.race.vector_clocks import Signal, joined


class Synchronization(Observer):
    """Part of the RaceDetector: every event that orders threads, but for accesses to memory."""

    def __init__(self, races):
        self.races = races

    def start(self, cluster) -> None:
        self.clocks = self.races.clocks
        self.meetings: dict[object, list] = {}

    # ---- barriers of threads ----

    def warp_sync(self, cluster, split, members: int) -> None:
        members &= cluster.alive[split.warp]
        key = ("warp", split.warp, members)
        seen = self.meetings.pop(key, [0])[0]
        if not seen:
            self.clocks.meet(self.clocks.agents_of(split.warp, members))
        seen |= split.mask
        if members & ~seen:
            self.meetings[key] = [seen]

    def bar_arrive(self, cluster, split, number: int) -> None:
        key, agents = ("bar", split.cta, number), self.clocks.agents(split)
        self.clocks.signal(key).add(self.clocks.release(agents))
        self.meetings.setdefault(key, []).append((split.index, agents))

    def bar_complete(self, cluster, cta: int, number: int, waiting: list) -> None:
        key = ("bar", cta, number)
        signal = self.clocks.signals.pop(key)
        waits = {split.index for split in waiting}
        agents = [a for index, a in self.meetings.pop(key, []) if index in waits]
        if agents:
            self.clocks.acquire(np.sort(np.concatenate(agents)), signal.gathered)

    def cluster_arrive(self, cluster, split, relaxed: bool) -> None:
        stamp = self.clocks.release(self.clocks.agents(split), clock=not relaxed)
        self.clocks.signal("cluster").add(stamp)

    def cluster_complete(self, cluster) -> None:
        signal = self.clocks.signal("cluster")
        signal.publish()
        signal.gathered = None

    def cluster_wait(self, cluster, split) -> None:
        self.clocks.acquire(self.clocks.agents(split), self.clocks.signal("cluster").published)

    # ---- mbarriers ----

    def mbarrier_init(self, cluster, split, lane: int, place) -> None:
        agent = self.clocks.agent_of(split.warp * 32 + lane)
        self.clocks.signals[place] = Signal(initialised=(agent, self.clocks.epoch(agent)))

    def mbarrier_arrive(self, cluster, split, lanes: int, place, relaxed: bool) -> None:
        agents = self.clocks.agents_of(split.warp, lanes)
        self.clocks.signal(place).add(self.clocks.release(agents, clock=not relaxed))

    def mbarrier_wait(self, cluster, split, lanes: int, place, relaxed: bool) -> None:
        signal = self.clocks.signal(place)
        signal.awaited = True
        self.clocks.acquire(self.clocks.agents_of(split.warp, lanes), signal.published, clock=not relaxed)

    def mbarrier_blocked(self, cluster, split, lanes: int, place, parity: int) -> None:
        self.clocks.signal(place).awaited = True

    def phase_complete(self, cluster, place) -> None:
        signal = self.clocks.signal(place)
        column = self.clocks.columns.get(("bytes", place))
        if column is not None and signal.gathered is not None:
            stamp = signal.gathered
            stamp.clock = joined(stamp.clock, np.zeros(column + 1, np.int32))
            stamp.clock[column] = cluster.mbarriers[place].phase
        signal.publish()

    # ---- tensor memory ----

    def tcgen05_fence(self, cluster, split, after: bool) -> None:
        clocks, agents = self.clocks, self.clocks.agents(split)
        both = np.maximum(clocks.tcgen05_clock[agents], clocks.thread_clock[agents])
        (clocks.tcgen05_clock if after else clocks.thread_clock)[agents] = both

    def tmem_wait(self, cluster, split, kind: str) -> None:
        clocks, agents = self.clocks, self.clocks.agents(split)
        column = clocks.column(kind, split.warp)
        count = clocks.queue(column).count
        clocks.clock[agents, column] = clocks.tcgen05_clock[agents, column - clocks.threads] = count
