"""A record of what the warps of a cluster did on barriers, in execution order, on which repairs can be
tried.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from ptxsim.checks.race.part import Part
from ptxsim.events.observer import observer_of
from ptxsim.events.records import Arrival, BarArrival, BulkCopy, Commit, CopyArrival, PhaseWait, Place
from ptxsim.events.views import Cluster, Split

MOST = 512  # steps of a cluster that are kept: its first rounds


class BarrierStep(NamedTuple):
    """One step on barriers by some lanes of a warp."""

    warp: int
    lanes: int  # mask
    row: int
    # "wait", "arrive", "load", "commit", "copy" (cp.async), "bar"; "use": the first of MMAs, stores or ld
    kind: str
    places: tuple[Place, ...]  # mbarriers, or (CTA, number) of a CTA barrier
    amount: int = 0  # parity of a wait, arrivals, bytes of a load, or threads of a CTA barrier
    more: int = 0  # bytes that an arrival announces; 1: an arrival on a CTA barrier that waits


class MbarrierState(NamedTuple):
    """The state of an mbarrier, as computed from steps."""

    expected: int  # arrivals per phase
    pending: int  # arrivals that the current phase lacks
    over: int = 0  # phases that are complete
    tx: int = 0  # bytes announced that have not arrived

    def after(self, step: BarrierStep) -> MbarrierState:
        """The state after a step that signals the barrier."""
        arrivals = {"load": 0, "commit": 1}.get(step.kind, step.amount)
        pending, tx = self.pending - arrivals, self.tx + step.more
        tx -= step.amount if step.kind == "load" else 0
        if pending > 0 or tx:
            return self._replace(pending=pending, tx=tx)
        return MbarrierState(self.expected, self.expected, self.over + 1)

    def lets_pass(self, wait: BarrierStep) -> bool:
        return (self.over - 1) & 1 == wait.amount


class CtaBarrierState(NamedTuple):
    """The state of a CTA barrier, as computed from steps."""

    over: int = 0  # phases that are complete
    threads: int = 0  # that have arrived in the current phase

    def after(self, step: BarrierStep) -> CtaBarrierState:
        threads = self.threads + 32
        return (
            CtaBarrierState(self.over, threads) if threads < step.amount else CtaBarrierState(self.over + 1)
        )


class Outlook(NamedTuple):
    """What holds for all interleavings of a record; None: unknown."""

    ends: bool | None = None  # False: some interleaving hangs
    left_behind: BarrierStep | None = None  # a wait at which some interleaving hangs, if known
    by_luck: BarrierStep | None = None  # if all end: a wait whose phase depends on the interleaving


class BarrierRecord(Part):
    """Part of the RaceDetector. `clocks.steps` is the record; asynchronous work notes its length at issue."""

    def __init__(self, races):
        super().__init__(races)
        self.searched: dict[tuple, Outlook] = {}  # what short_records.py found, of all clusters

    def start(self, cluster: Cluster) -> None:
        self.steps = self.races.clocks.steps
        self.counts: dict[Place, int] = {}
        self.taken = 0  # steps that were taken in the run; the steps after them still wait
        self.whole = True  # False: a barrier was used in a way that has no step here
        self.mending: dict | None = None  # what diagnosis/repairs.py found on this record
        self.outlook: Outlook | None = None  # what short_records.py found, once asked
        self.last: dict[int, str] = {}  # warp -> the kind of its last step

    def close(self, cluster: Cluster) -> None:
        """Adds the waits that never completed."""
        self.taken = len(self.steps)
        for number, wait in sorted(cluster.waits.items()) if cluster.stuck else ():
            if wait.kind == "mbarrier":
                split, parity = cluster.splits[number], wait.detail["parity"]
                self._add(split.warp, split.mask, split.row, "wait", (wait.detail["place"],), parity)

    def _use(self, split: Split, lanes: int) -> None:
        if self.last.get(split.warp) != "use":
            self._add(split.warp, lanes, split.row, "use", ())

    def tensor_issue(self, cluster: Cluster, split: Split, work) -> None:
        self._use(split, 1 << split.leader)

    def tmem_issue(self, cluster: Cluster, split: Split, cells, write: bool) -> None:
        self._use(split, split.mask)

    def last_wait(self, warp: int, at: int) -> Place | None:
        """What a warp waited for last in the first `at` steps."""
        waits = (s.places[0] for s in reversed(self.steps[:at]) if s.warp == warp and s.kind == "wait")
        return next(waits, None)

    def newest_wait(self, warp: int, at: int, loads: bool = False) -> Place | None:
        """What a warp waited for last in the first `at` steps, unless it has signalled since. An arrival
        that announces bytes counts as a signal only if `loads`.
        """
        own = (s for s in reversed(self.steps[:at]) if s.warp == warp)
        hands_on = ("arrive", "commit")
        ends = (s for s in own if s.kind == "wait" or (s.kind in hands_on and (loads or not s.more)))
        newest = next(ends, None)
        return newest.places[0] if newest is not None and newest.kind == "wait" else None

    def refills(self, warp: int, place: Place) -> bool:
        """Whether a warp loads, or announces bytes, right after a wait for this barrier."""
        own = [s for s in self.steps if s.warp == warp]
        waits = ((s, after) for s, after in itertools.pairwise(own) if s.kind == "wait" and place in s.places)
        return any(after.kind == "load" or after.kind == "arrive" and after.more for _, after in waits)

    def _add(self, *fields) -> None:
        if len(self.steps) < MOST:
            self.steps.append(BarrierStep(*fields))
            self.last[self.steps[-1].warp] = self.steps[-1].kind

    def mbarrier_init(self, cluster: Cluster, split: Split, lane: int, place) -> None:
        self.whole &= place not in self.counts
        self.counts[place] = cluster.mbarriers[place].expected

    def mbarrier_arrive(self, cluster: Cluster, split: Split, arrival: Arrival) -> None:
        places = (arrival.place,)
        tx = arrival.announces or 0
        self._add(split.warp, arrival.lanes, split.row, "arrive", places, arrival.arrivals, tx)

    def mbarrier_wait(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        self._add(split.warp, wait.lanes, split.row, "wait", (wait.place,), wait.parity)

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> None:
        if not copy.barriers:
            self._use(split, 1 << split.leader)
            return
        self._add(split.warp, 1 << split.leader, split.row, "load", copy.barriers, copy.size)

    def commit_issue(self, cluster: Cluster, split: Split, commit: Commit) -> None:
        self._add(split.warp, 1 << split.leader, split.row, "commit", commit.barriers)

    def cp_async_signal(self, cluster: Cluster, split: Split, arrival: CopyArrival) -> None:
        self.whole = False
        self._add(split.warp, split.mask, split.row, "copy", tuple(dict.fromkeys(arrival.places)))

    def cluster_arrive(self, cluster: Cluster, split: Split, relaxed: bool) -> None:
        self.whole = False

    def bar_arrive(self, cluster: Cluster, split: Split, arrival: BarArrival) -> None:
        threads = arrival.threads or 32 * cluster.warps_per_cta
        place = (split.cta, arrival.number)
        self._add(split.warp, split.mask, split.row, "bar", (place,), threads, int(arrival.waits))


def record_of(cluster: Cluster) -> BarrierRecord | None:
    """The record of a cluster's barriers; None when it runs without checks."""
    return observer_of(cluster.bus, BarrierRecord)
