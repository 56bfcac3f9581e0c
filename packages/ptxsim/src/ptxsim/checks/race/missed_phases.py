"""Waits that another schedule leaves behind. An mbarrier tells only two phases apart (PTX ISA 9.7.13.15.16),
so a wait for a phase must come before the next one ends. If nothing orders the end of the next phase after
the wait, the wait may come later; then it lasts until one more phase is over. If that phase never ends, or
only ends after this very wait, the kernel can hang, although this run completed.

If only threads arrive, the same is decided by counting: all arrivals that do not come after a wait may come
before it. They make a number of phases; if the barrier is then in a phase that does not let the wait pass,
the warp hangs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.barrier_history import history_of
from ptxsim.checks.phrases import phase_name
from ptxsim.checks.race.barrier_record import BarrierStep
from ptxsim.checks.race.part import Part
from ptxsim.checks.race.short_records import ends_in_every_order, outlook
from ptxsim.events.records import Arrival, BulkCopy, Commit, CopyArrival, PhaseWait, Place
from ptxsim.events.views import Cluster, Split
from ptxsim.machine.endless import only_asks
from ptxsim.machine.split import Origin
from ptxsim.report.findings import Finding


@dataclass(frozen=True)
class Passed:
    """A wait that found its phase complete."""

    column: int  # queue of the waits of its warp
    count: int  # its number among them
    warp: int
    lanes: int
    row: int
    phase: int  # phase that it saw complete

    def before(self, thread_clock) -> bool:
        """Whether a thread with this thread_clock comes after the wait."""
        return self.column < len(thread_clock) and thread_clock[self.column] >= self.count


def _waits(cluster: Cluster, split: Split) -> bool:
    """Whether the thread polls until the phase is over. A single test leaves no thread waiting."""
    return split.instr.mods[0] != "test_wait" or only_asks(cluster.program, split.row)


_SETTLED = 2  # after so many phases whose every arrival comes after a wait, later arrivals do too


@dataclass
class Free:
    """A wait that passed, and how many arrivals may come before it."""

    wait: Passed
    arrivals: int
    bound: int = 0  # phases in a row whose every arrival comes after the wait
    settled: bool = False


class MissedPhases(Part):
    """Part of the RaceDetector, after Synchronization. A warp's waits are a queue of thread_clock."""

    def start(self, cluster: Cluster) -> None:
        self.passed: dict[tuple, dict[int, Passed]] = {}  # place -> warp -> its wait in the current phase
        self.behind: dict[
            tuple, list[Passed]
        ] = {}  # place -> waits that may come after the current phase began
        self.missed: dict[tuple, Passed] = {}  # place -> the first wait that may miss a phase
        self.arrivals: dict[tuple, int] = {}  # place -> arrivals of threads so far
        self.free: dict[tuple, list[Free]] = {}  # place -> waits, unless copies or commits signal the barrier
        self.copied: set[tuple] = set()  # barriers that copies or commits signal

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> None:
        self.copied.update(copy.barriers)

    def commit_issue(self, cluster: Cluster, split: Split, commit: Commit) -> None:
        self.copied.update(commit.barriers)

    def cp_async_signal(self, cluster: Cluster, split: Split, arrival: CopyArrival) -> None:
        self.copied.update(arrival.places)

    def mbarrier_arrive(self, cluster: Cluster, split: Split, arrival: Arrival) -> None:
        place, number = arrival.place, arrival.lanes.bit_count()
        self.arrivals[place] = self.arrivals.get(place, 0) + number
        waits = () if place in self.copied else self.free.get(place, ())
        agents = self.clocks.agents_of(split.warp, arrival.lanes) if waits else None
        for free in waits:
            known = self.clocks.thread_clock[agents, free.wait.column]
            if not free.settled and (known < free.wait.count).any():
                free.arrivals += number
                free.bound = -1

    def mbarrier_wait(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        place = wait.place
        column = self.clocks.column("wait", split.warp)
        queue = self.clocks.queue(column)
        queue.count += 1
        self.clocks.changes += 1
        column -= self.clocks.threads
        # for all lanes of the warp: shfl and elect order them too
        self.clocks.thread_clock[self.clocks.rows_of_warp(split.warp), column] = queue.count
        if not _waits(cluster, split):
            return
        phase = cluster.mbarriers[place].phase - 1
        passed = Passed(column, queue.count, split.warp, wait.lanes, split.row, phase)
        self.passed.setdefault(place, {})[split.warp] = passed
        if place not in self.copied:
            waits = [free for free in self.free.get(place, ()) if not free.settled]
            self.free[place] = [*waits, Free(passed, self.arrivals.get(place, 0))]

    def phase_complete(self, cluster: Cluster, place) -> None:
        for free in () if place in self.copied else self.free.get(place, ()):
            free.bound += 1
            if free.bound > _SETTLED and not free.settled:
                free.settled = True
                self._count(cluster, place, free)
        signal = self.clocks.signals.get(place)
        if signal is None or signal.published is None:
            return
        known = signal.published.thread_clock
        for wait in self.behind.pop(place, ()):
            if wait.before(known):
                self.missed.setdefault(place, wait)
        behind = [wait for wait in self.passed.pop(place, {}).values() if not wait.before(known)]
        if behind:
            self.behind[place] = behind

    def _count(self, cluster: Cluster, place, free: Free) -> None:
        """Notes the wait as missed if the arrivals that may come before it leave it behind."""
        barrier, history = cluster.mbarriers.get(place), history_of(cluster).get(place)
        if barrier is None or history is None or barrier.expected != history.count:
            return
        if place in self.copied or barrier.tx:  # bytes decide too
            return
        complete = barrier.phase * history.count + history.count - barrier.pending
        if self.arrivals.get(place) != complete:
            return  # some arrivals count several times: their number is unknown here
        if (free.arrivals // history.count - free.wait.phase) % 2 == 0:
            self.missed.setdefault(place, free.wait)

    def finish(self, cluster: Cluster) -> None:
        if cluster.stuck:
            return
        for place, waits in self.free.items():
            for free in waits:
                if not free.settled:
                    self._count(cluster, place, free)
        missed = {p: waits[0] for p, waits in self.behind.items()} | self.missed
        if missed and ends_in_every_order(cluster, self.races.record):
            return
        for place, wait in missed.items():
            self._report(cluster, place, wait)
        if not missed and any(self.free.values()):
            self._search(cluster)

    def _search(self, cluster: Cluster) -> None:
        """Searches the interleavings of a short record, if counting has found no wait that can hang."""
        seen = outlook(cluster, self.races.record)
        if seen.left_behind is not None:
            parity = seen.left_behind.amount
            message = (
                f"in another order, this wait comes when the barrier is in a later phase, on which "
                f"parity {parity} does not pass, and hangs: nothing orders the arrivals relative to the waits"
            )
            self._add(cluster, seen.left_behind.places[0], seen.left_behind, "error", message)
        elif seen.by_luck is not None:
            message = "in another order this wait passes in another phase of the same parity: which is luck"
            finding = self._add(cluster, seen.by_luck.places[0], seen.by_luck, "review", message)
            finding.evidence["luck"] = True  # every_order.py then looks for the consequences

    def _report(self, cluster: Cluster, place, wait: Passed) -> None:
        seen, missed_one, vain = (phase_name(wait.phase + ahead) for ahead in range(3))
        message = (
            f"this wait passed on {seen}, but {missed_one} may be over before the wait comes: "
            f"nothing orders its end after the wait, which then waits for {vain} in vain"
        )
        self._add(cluster, place, wait, "error", message)

    def _add(
        self, cluster: Cluster, place: Place, wait: Passed | BarrierStep, severity: str, message: str
    ) -> Finding:
        reporter, warp = self.races.reporter, wait.warp
        name = reporter.shared_name(place[1])
        where = Origin(cluster, warp, warp // cluster.warps_per_cta, None, wait.lanes, wait.row)
        key, message = ("missed", name.partition("[")[0]), f"{name}: {message}"
        return reporter.add("mbarrier", severity, message, CAUSES["missed"], where, key, barrier=name)
