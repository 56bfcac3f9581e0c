"""Synchronisation of threads: which clocks a barrier, an mbarrier or a tcgen05 fence joins."""

from __future__ import annotations

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.barrier_history import history_of
from ptxsim.checks.race.clock_rows import rows_of, with_epoch
from ptxsim.checks.race.part import Part
from ptxsim.checks.race.thread_phases import ThreadPhases, come_after
from ptxsim.checks.race.vector_clocks import Signal, Stamp
from ptxsim.events.records import Arrival, BarArrival, PhaseWait
from ptxsim.events.views import Cluster, Scheduled, Split
from ptxsim.machine.register_files import WHOLE_WARP
from ptxsim.units.barriers import barrier_of_cluster

_COUNT = (
    "init(count) must equal the number of arrivals in a phase; before a thread arrives again, it must wait "
    "for the phase to end"
)
_LEFT_OVER = CAUSES["left-over"].hint


class Synchronization(Part):
    """Part of the RaceDetector: every event that orders threads, except accesses to memory."""

    def start(self, cluster: Cluster) -> None:
        self.meetings: dict[object, list] = {}
        self.own: dict[object, dict[int, int]] = {}  # mbarrier -> warp -> arrivals by a single lane
        self.made: dict[object, ThreadPhases] = {}  # mbarrier -> its phases by threads alone
        self.fenced: dict[int, tuple[tuple, int]] = {}  # warp -> (its state, lanes that fenced in it)

    # ---- barriers of threads ----

    def warp_sync(self, cluster: Cluster, split: Split, members: int) -> None:
        members &= cluster.alive[split.warp]
        key = ("warp", split.warp, members)
        seen = self.meetings.pop(key, [0])[0]
        if not seen:
            self.clocks.meet(self.clocks.agents_of(split.warp, members))
        seen |= split.mask
        if members & ~seen:
            self.meetings[key] = [seen]

    def bar_arrive(self, cluster: Cluster, split: Scheduled, arrival: BarArrival) -> None:
        key, agents = ("bar", split.cta, arrival.number), self.clocks.agents(split)
        column = self.clocks.thread_column("bar", key)
        phases, several = self.clocks.queues[column].count, arrival.threads != 32
        whole = split.mask == cluster.alive[split.warp]  # else only part of a warp: another error
        if phases and several and whole and self._least(agents, column) < phases:
            self._luck_at_barrier(split, arrival.number)
        self.clocks.release_into(self.clocks.signal(key), agents)
        self.meetings.setdefault(key, []).append((split.index, agents))

    def bar_complete(self, cluster: Cluster, cta: int, number: int, waiting: list[Scheduled]) -> None:
        key = ("bar", cta, number)
        signal = self.clocks.signals.pop(key)
        column = self.clocks.thread_column("bar", key)
        queue = self.clocks.queues[column]
        queue.count += 1
        phases = with_epoch(signal.gathered.thread_clock, column, queue.count)
        waits = {split.index for split in waiting}
        agents = [a for index, a in self.meetings.pop(key, []) if index in waits]
        if agents:
            self.clocks.acquire(np.unique(np.concatenate(agents)), Stamp(signal.gathered.clock, phases))

    def _least(self, agents: np.ndarray, column: int) -> int:
        """The latest epoch of a queue that all of these threads know."""
        return int(self.clocks.thread_clock[rows_of(agents), column].min())

    def _luck_at_barrier(self, split: Split, number: int) -> None:
        message = (
            f"CTA barrier {number}: this warp arrives, but nothing tells it that the previous phase is "
            f"over: which phase it counts in is luck"
        )
        self.races.reporter.add(
            "collective", "review", message, _LEFT_OVER, split, ("luck", number), luck=True
        )

    def cluster_arrive(self, cluster: Cluster, split: Split, relaxed: bool) -> None:
        stamp = self.clocks.release(self.clocks.agents(split), clock=not relaxed)
        self.clocks.signal("cluster").add(stamp)

    def cluster_complete(self, cluster: Cluster) -> None:
        signal = self.clocks.signal("cluster")
        self._exits_arrive(cluster, signal)
        signal.published, signal.gathered = signal.gathered or signal.published, None

    def _exits_arrive(self, cluster: Cluster, signal: Signal) -> None:
        """Threads that ended without arriving count as arrived: all that they did comes before the barrier
        (9.7.13.3).
        """
        barrier = barrier_of_cluster(cluster)
        late = barrier.seen.reshape(-1, 32) != barrier.phase - 1
        for warp, alive in enumerate(cluster.alive):
            gone = cluster.lanes_at_start(warp) & ~alive
            gone &= sum(1 << int(lane) for lane in np.flatnonzero(late[warp])) if gone else 0
            if gone:
                signal.add(self.clocks.release(self.clocks.agents_of(warp, gone), clock=True))

    def cluster_wait(self, cluster: Cluster, split: Split) -> None:
        self.clocks.acquire(self.clocks.agents(split), self.clocks.signal("cluster").published)

    # ---- mbarriers ----

    def mbarrier_init(self, cluster: Cluster, split: Split, lane: int, place) -> None:
        agent = self.clocks.agent_of(split.warp * 32 + lane)
        self.clocks.signals[place] = Signal(initialised=(agent, self.clocks.epoch(agent)))
        self.own[place], self.made[place] = {}, ThreadPhases()

    def mbarrier_arrive(self, cluster: Cluster, split: Split, arrival: Arrival) -> None:
        place = arrival.place
        clocks, agents = self.clocks, self.clocks.agents_of(split.warp, arrival.lanes)
        signal = clocks.signal(place)
        if len(agents) == 1 and place in self.own:
            self.own[place][split.warp] = self.own[place].get(split.warp, 0) + 1
        if not arrival.announces:
            self._ends(cluster, place, signal, agents)
        if signal.published is not None:
            self._late(cluster, signal, place, agents, split.row)
        if not arrival.releases:
            signal.relaxed |= zip(agents.tolist(), clocks.clock[agents, agents].tolist(), strict=True)
            signal.arrive(clocks.release(agents, clock=False))
            return
        epochs = clocks.clock[agents, agents]
        barrier = cluster.mbarriers[place]
        if place in self.made and not (arrival.announces or barrier.announced or barrier.tx):
            self.made[place].arrive(agents, epochs, arrival.arrivals)
        stamp, second = clocks.release_each(agents)
        signal.arrive(stamp, second)
        if second is not None:
            signal.together.append((agents, epochs, stamp))

    def _ends(self, cluster: Cluster, place, signal: Signal, agents: np.ndarray) -> None:
        """If these arrivals end the phase and their threads know of all others, the threads know that it
        is over.
        """
        barrier = cluster.mbarriers[place]
        if len(agents) != barrier.pending or barrier.tx or self.clocks.threads_per_agent > 1:
            return
        rows, column = rows_of(agents), self.clocks.column("bytes", place)
        if signal.gathered is not None:
            gathered = signal.gathered.clock
            missing = (self.clocks.clock[rows, : len(gathered)] < gathered).any(0)
            missing[column : column + 1] = False  # the number of phases so far is no arrival
            if missing.any():
                return
        self.clocks.changes += 1
        self.clocks.thread_clock[rows, column - self.clocks.threads] = barrier.phase + 1

    def _late(self, cluster: Cluster, signal: Signal, place, agents: np.ndarray, row: int) -> None:
        """Doubts the phase that has just completed if some of these arrivals could have counted in it."""
        clocks, phase = self.clocks, cluster.mbarriers[place].phase
        column = clocks.thread_column("bytes", place)
        if clocks.threads_per_agent == 1 and self._least(agents, column) < phase:
            stray = agents[clocks.thread_clock[agents, column] < phase]
            if place in self.made:
                told = come_after(self.made[place].last, clocks.clock[stray])
                clocks.thread_clock[stray[told], column] = phase
                stray = stray[~told]
            if len(stray):
                self._doubt(cluster, signal, place, clocks.clock[stray], clocks.thread_clock[stray], row)

    def arrive_later(self, cluster: Cluster, place, stamp: Stamp, after: Stamp, row: int) -> None:
        """Adds an arrival of asynchronous work, which hands over `stamp`; its instruction came after
        `after`.
        """
        signal = self.clocks.signal(place)
        self._late_work(cluster, signal, place, stamp, after, row)
        signal.arrive(stamp)

    def _late_work(
        self, cluster: Cluster, signal: Signal, place, brings: Stamp, after: Stamp, row: int
    ) -> None:
        """The same as `_late` for an arrival that hands over `brings`, by an instruction that came after
        `after`.
        """
        if signal.published is None or self.clocks.threads_per_agent > 1:
            return
        column, known = self.clocks.thread_column("bytes", place), after.thread_clock
        if (known[column] if column < len(known) else 0) < cluster.mbarriers[place].phase:
            self._doubt(cluster, signal, place, after.clock[None], known[None], row, brings)

    def _doubt(
        self, cluster: Cluster, signal: Signal, place, clocks, thread_clocks, row: int, brings=None
    ) -> None:
        """From now on a wait for the last phase of this mbarrier cannot rely on all its arrivals."""
        phase, relied = cluster.mbarriers[place].phase, signal.published.clock
        signal.doubt(clocks, brings or Stamp(clocks.min(0), thread_clocks.min(0)), row)
        column = self.clocks.column("bytes", place)
        signal.rely(signal.published.knowing(self.clocks, column, phase))
        left = signal.published.clock
        if signal.taken == phase and (relied[: len(left)] > left).any():
            self._luck(cluster, place, row, phase)

    def _luck(self, cluster: Cluster, place, row: int, phase: int) -> None:
        """Reports that a thread has passed the last phase although other arrivals could have completed it."""
        reporter, history = self.races.reporter, history_of(cluster).get(place)
        name = reporter.shared_name(place[1])
        count = history.count if history is not None else cluster.mbarriers[place].expected
        message = (
            f"{name} of CTA {place[0]}: an arrival of phase {phase} is not ordered after phase {phase - 1}, "
            f"which a wait has let pass: which {count} arrivals make a phase is luck"
        )
        finding = reporter.add(
            "mbarrier", "review", message, _COUNT, None, ("luck", place[1]), barrier=name, luck=True
        )
        finding.where = finding.where or reporter.row_place(cluster, place[0], row)

    def mbarrier_wait(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        place = wait.place
        signal = self.clocks.signal(place)
        signal.awaited = True
        for arrivals in signal.coming.values():  # of cp.async, which are still to come
            for after, brings, row in arrivals:
                self._late_work(cluster, signal, place, brings, after, row)
        signal.taken = cluster.mbarriers[place].phase
        agents = self.clocks.agents_of(split.warp, wait.lanes)
        own = self._own_phases(cluster, split.warp, place)
        self.clocks.acquire(agents, self._relied_on(place, split.warp, signal, own), clock=wait.acquires)

    def _own_phases(self, cluster: Cluster, warp: int, place) -> int:
        """How many phases must be over when a warp waits, judging by its own arrivals and the count per
        phase.
        """
        arrivals, barrier = self.own.get(place, {}).get(warp, 0), cluster.mbarriers[place]
        history = history_of(cluster).get(place)
        if history is None or barrier.expected != history.count:
            return 0
        if history.bytes_phase >= 0 or barrier.announced or barrier.tx:  # the last of them may lack bytes
            arrivals = max(0, arrivals - 1)
        return arrivals // barrier.expected

    def _relied_on(self, place, warp: int, signal: Signal, own: int) -> Stamp | None:
        """What a wait gives a warp's threads: the stamp of the phase that is complete, or of an earlier phase
        of the same parity that would have let them pass had they come earlier (PTX ISA 9.7.13.15.16).
        """
        column = self.clocks.thread_column("bytes", place)
        # what one lane has seen counts for all: shfl and elect order them
        lanes = self.clocks.rows_of_warp(warp)
        known = max(own, int(self.clocks.thread_clock[lanes, column].max()))
        enough = known + (signal.taken - known) % 2
        if self.clocks.threads_per_agent > 1 or enough >= signal.taken:
            return signal.published
        all_lanes = self.clocks.clock[lanes].max(0)
        if place in self.made and come_after(self.made[place].before, all_lanes[None])[0]:
            return signal.published
        return signal.passed_at(enough)

    def mbarrier_blocked(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        self.clocks.signal(wait.place).awaited = True

    def phase_complete(self, cluster: Cluster, place) -> None:
        signal = self.clocks.signal(place)
        if signal.gathered is not None:
            column, phase = self.clocks.column("bytes", place), cluster.mbarriers[place].phase
            signal.gathered = signal.gathered.knowing(self.clocks, column, phase)
            signal.advance(phase)
        if place in self.made:
            history, expected = history_of(cluster).get(place), cluster.mbarriers[place].expected
            self.made[place].end(expected if history is not None and history.count == expected else -1)

    # ---- tensor memory ----

    def tcgen05_fence(self, cluster: Cluster, split: Split, after: bool) -> None:
        but = [] if after else self._of_all_lanes(cluster, split)
        self.clocks.tcgen05_fence(self.clocks.agents(split), after, but)

    def _of_all_lanes(self, cluster: Cluster, split: Split) -> list[int]:
        """Columns of a warp's tcgen05.ld and st that before_thread_sync must leave out because some lane
        has not executed it since: the warp executes these as a whole, but each thread fences for itself
        (PTX ISA 9.7.16.10).
        """
        if split.warp not in self.fenced and not cluster.alive[split.warp] & ~split.mask:
            return []
        known = (self.clocks.columns.get((kind, split.warp)) for kind in ("ld", "st"))
        columns = [column for column in known if column is not None]
        counts = [self.clocks.queue(column).count for column in columns]
        agents = self.clocks.agents_of(split.warp, WHOLE_WARP)
        state = counts, self.clocks.clock[agents, agents].tolist()  # a release ends a lane's epoch
        before, lanes = self.fenced.get(split.warp, (state, 0))
        lanes = (lanes if before == state else 0) | split.mask
        if not cluster.alive[split.warp] & ~lanes:
            if before == state:
                self.fenced.pop(split.warp, None)
            return []
        self.fenced[split.warp] = state, lanes
        return [column - self.clocks.threads for column in columns]

    def tmem_wait(self, cluster: Cluster, split: Split, kind: str) -> None:
        clocks, agents = self.clocks, self.clocks.agents(split)
        column = clocks.column(kind, split.warp)
        count = clocks.queue(column).count
        clocks.learn(agents, column, count)
        clocks.tcgen05_clock[rows_of(agents), column - clocks.threads] = count
