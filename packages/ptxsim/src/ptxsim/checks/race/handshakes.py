"""What the warps have signalled on mbarriers lately, to word race reports. It orders nothing, but it begins
epochs, so that what a thread did before a signal differs from what it does afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ptxsim.checks.barrier_history import history_of
from ptxsim.checks.race.access import Access
from ptxsim.checks.race.clock_rows import most
from ptxsim.checks.race.part import Part
from ptxsim.checks.race.told_by_exchange import before_meeting
from ptxsim.checks.static_flow import way_without_barrier
from ptxsim.events.records import Arrival, PhaseWait, Place
from ptxsim.events.views import Cluster, Split
from ptxsim.machine.register_files import WHOLE_WARP
from ptxsim.machine.split import first_lane


@dataclass
class Handed:
    """The last arrival of one warp on one mbarrier."""

    tick: int  # time of the arrival: a count of arrivals and waits
    agent: int  # the first of those that arrived
    epoch: int  # epoch of this agent that the arrival ended
    row: int
    reached: np.ndarray  # epochs of all agents of the warp until then


class Handshakes(Part):
    """Part of the RaceDetector. Comes before Synchronization, because it needs the epochs before an
    arrival ends them.
    """

    def start(self, cluster: Cluster) -> None:
        self.tick = 0
        self.handed: dict[int, dict[Place, Handed]] = {}
        self.waited: dict[int, int] = {}  # warp -> tick of its last wait
        self.newest: dict[int, Place] = {}  # warp -> what it has waited for last
        self.arrived: list = []  # those of the last phase
        self.relaxed: list[tuple[np.ndarray, int]] = []  # arrivals at the cluster's barrier, without release
        self.met: dict[int, list] = {}  # warp -> such arrivals of the phases that it has waited for
        self.unreleased: dict[Place, dict[int, tuple]] = {}  # the same at mbarriers, the last of each warp

    def handed_by(self, warp: int | None) -> dict[Place, Handed]:
        """The last arrival of a warp at each barrier; none if no warp is known."""
        return self.handed.get(warp, {}) if warp is not None else {}

    def mbarrier_arrive(self, cluster: Cluster, split: Split, arrival: Arrival) -> None:
        if arrival.announces is not None:
            return  # this arrival announces bytes and hands nothing over
        self.tick += 1
        if not arrival.releases:
            known = most(self.clocks.clock, self.clocks.agents_of(split.warp, arrival.lanes))
            self.unreleased.setdefault(arrival.place, {})[split.warp] = known, split.row
        agent = self.clocks.agent_of(split.warp * 32 + first_lane(arrival.lanes))
        warp = self.clocks.agents_of(split.warp, WHOLE_WARP)
        epochs = self.clocks.clock[warp, warp]
        if self.clocks.threads_per_agent == 1:
            self.clocks.begin_epochs(warp)
        handed = Handed(self.tick, agent, self.clocks.epoch(agent), split.row, epochs)
        self.handed.setdefault(split.warp, {})[arrival.place] = handed

    def mbarrier_wait(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        self.tick += 1
        self.waited[split.warp], self.newest[split.warp] = self.tick, wait.place

    def cluster_arrive(self, cluster: Cluster, split: Split, relaxed: bool) -> None:
        if relaxed:
            agents = self.clocks.agents(split)
            self.relaxed.append((most(self.clocks.clock, agents), split.row))
            self.clocks.begin_epochs(agents)

    def cluster_complete(self, cluster: Cluster) -> None:
        self.arrived, self.relaxed = self.relaxed, []

    def cluster_wait(self, cluster: Cluster, split: Split) -> None:
        self.met[split.warp] = self.arrived or self.met.get(split.warp, [])

    def met_relaxed(self, agent: int, epoch: int, warp: int | None) -> int | None:
        """The row of an arrival without release at a barrier of the cluster that stands between an epoch and
        what this warp did last; None: no such one.
        """
        for clock, row in self.met.get(-1 if warp is None else warp, ()):
            if agent < len(clock) and clock[agent] >= epoch:
                return row
        return None

    def met_unreleased(self, agent: int, epoch: int, places: list[Place]) -> tuple[Place, int] | None:
        """(mbarrier, row) of an arrival at one of these that comes after an epoch and releases nothing."""
        for place in places:
            for clock, row in self.unreleased.get(place, {}).values():
                if agent < len(clock) and clock[agent] >= epoch:
                    return place, row
        return None

    def handed_early(self, agent: int, guest: int, clock, issued) -> tuple[Place, int] | None:
        """(barrier, row) of a signal by this agent's warp since its last wait, if warp `guest` waits for
        that barrier and its `clock` knows of the signal: the guest was let in while the other warp was
        still at work. None: no such signal. issued: asynchronous work of the warp; a signal after its issue
        counts, too, whatever the warp has waited for since.
        """
        warp = self.clocks.warp_of(agent)
        since = self.waited.get(warp, 0)
        own = issued and self.clocks.warp_of(issued.thread) == warp  # else its clock tells less
        for place, handed in self._signals(warp, guest):
            later = issued and own and handed.epoch >= issued.clock[handed.agent]
            if clock[handed.agent] >= handed.epoch and (later or handed.tick > since):
                return place, handed.row
        return self._through_others(warp, clock, issued)

    def _through_others(self, warp: int, clock, issued) -> tuple[Place, int] | None:
        """The first signal of a warp after its tcgen05.ld or st, if `clock` knows of it by way of others."""
        if issued is None or issued.kind not in ("ld", "st"):
            return None
        later = [
            (handed.tick, place, handed.row)
            for place, handed in self.handed.get(warp, {}).items()
            if issued.clock[handed.agent] <= handed.epoch <= clock[handed.agent]
        ]
        return min(later)[1:] if later else None

    def handed_before(self, read: Access, guest: int, clock) -> tuple[Place, int] | None:
        """The same for a thread's read, of which only the epoch is known: the guest knows of the signal that
        began this epoch, and the text reads after the signal with no wait between. Of several barriers, it is
        the one that the guest has waited for last.
        """
        if clock[read.agent] != read.epoch - 1:
            return None
        program = self.races.launch.program
        signals = [(p, handed.row) for p, handed in self._signals(self.clocks.warp_of(read.agent), guest)]
        signals.sort(key=lambda signal: signal[0] != self.newest.get(guest))
        early = ((p, row) for p, row in signals if way_without_barrier(program, row, read.row))
        return next(early, None)

    def handed_for_warp(self, read: tuple[int, int, int], by: int, clock) -> tuple[Place, int] | None:
        """(barrier, row) of an arrival by another lane of the warp of a reading thread, if all its lanes met
        between the two, and if thread `by` waits for that barrier and its `clock` knows of the arrival.

        read: the thread's agent, its epoch, the row.
        """
        agent, epoch, row = read
        if self.clocks.threads_per_agent > 1:
            return None
        early = before_meeting(self.races.launch.program, row)
        for place, handed in self._signals(self.clocks.warp_of(agent), self.clocks.warp_of(by)):
            known = clock[handed.agent] >= handed.epoch and handed.reached[agent % 32] >= epoch
            if known and handed.row not in early:
                return place, handed.row
        return None

    def _signals(self, warp: int, guest: int) -> Iterator[tuple[Place, Handed]]:
        """The last arrivals of a warp on the barriers that warp `guest` waits for."""
        histories = history_of(self.races.cluster)
        for place, handed in self.handed.get(warp, {}).items():
            if place in histories and guest in histories[place].waits:
                yield place, handed
