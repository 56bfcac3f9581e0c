"""History of every mbarrier of a cluster: who signalled it, in which phases, and who saw them complete.

Other checks and the deadlock report read it. A source is (how, warp of the cluster, row of the program);
`how` is "arrive", "commit" or "load".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ptxsim.checks.static_flow import ignored_questions
from ptxsim.events.observer import Observer, observer_of
from ptxsim.events.records import Arrival, BulkCopy, Commit, CopyArrival, PhaseWait, Place
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.report.findings import Reporter

Source = tuple[str, int, int]


@dataclass
class Signals:
    """What one source has done on a barrier so far."""

    lanes: int = 0  # mask of the lanes that have signalled
    total: int = 0
    phase: int = -1  # the last phase it signalled
    now: int = 0  # signals in that phase
    announces: bool = False  # it also announces bytes (expect_tx)
    makes: int = 1  # arrivals that one signal makes, at most

    def add(self, lanes: int, phase: int) -> None:
        if self.phase != phase:
            self.phase, self.now = phase, 0
        self.lanes |= lanes
        self.total += lanes.bit_count()
        self.now += lanes.bit_count()

    @property
    def each(self) -> int:
        """Signals per thread of this source."""
        return self.total // self.lanes.bit_count()


@dataclass
class Waits:
    """The waits of one warp on one barrier, so far."""

    phase: int  # phase that the last wait saw complete
    lanes: int  # mask of the lanes that have seen it complete
    fresh: int | None = None  # row of the first wait, if it passed on the phase before the first
    again: tuple[int, int] | None = None  # (phase, row) of the first wait that passed again on one phase
    rows: set[int] = field(default_factory=set)
    count: int = 1  # waits that passed

    def note(self, phase: int, lanes: int, row: int) -> None:
        self.rows.add(row)
        self.count += 1
        if phase == self.phase and self.lanes & lanes:
            self.again = self.again or (phase, row)
        self.lanes = self.lanes | lanes if phase == self.phase else lanes
        self.phase = phase


@dataclass
class BarrierHistory:
    """One mbarrier. Phase -1 is the phase before the first: it counts as complete and seen."""

    row: int  # of its mbarrier.init
    thread: int  # that executed the init
    count: int
    sources: dict[Source, Signals] = field(default_factory=dict)
    # (warp, row) -> arrivals of cp.async without .noinc: each adds to the pending count what it takes away
    neutral: dict[tuple[int, int], Signals] = field(default_factory=dict)
    seen: int = -1  # the last phase that any thread has waited for
    bytes_phase: int = -1  # last phase that TMA delivered to
    parts: list[Origin] = field(default_factory=list)  # of the loads of this phase
    before: list[Origin] = field(default_factory=list)  # of the loads of the previous phase
    # (warp, lanes of one instruction) -> the last phase they started work for; the last they saw complete
    armed: dict[tuple[int, int], int] = field(default_factory=dict)
    passed: dict[tuple[int, int], int] = field(default_factory=dict)
    waits: dict[int, Waits] = field(default_factory=dict)  # warp -> its waits

    @property
    def arrivals(self) -> dict[Source, Signals]:
        """Its sources other than loads."""
        return {source: signals for source, signals in self.sources.items() if source[0] != "load"}

    @property
    def signallers(self) -> set[int]:
        """Warps that have arrived on it or committed to it."""
        return {warp for _, warp, _ in self.arrivals}

    @property
    def loaders(self) -> set[int]:
        """Warps whose loads report to it."""
        return {warp for how, warp, _ in self.sources if how == "load"}

    def arriving(self, hows: Collection[str] = ("arrive", "commit")) -> dict[int, int]:
        """Warp -> lanes that have arrived or committed."""
        lanes: dict[int, int] = {}
        for (how, warp, _), signals in self.sources.items():
            if how in hows:
                lanes[warp] = lanes.get(warp, 0) | signals.lanes
        return lanes

    def last_seen(self, thread: int) -> int:
        """The last phase that a thread saw complete; -1 if none."""
        warp, bit = thread // 32, 1 << thread % 32
        return max((p for (w, lanes), p in self.passed.items() if w == warp and lanes & bit), default=-1)


def threads_in(lanes: dict[int, int]) -> int:
    """How many threads these lanes, by warp, are."""
    return sum(mask.bit_count() for mask in lanes.values())


class Origin(NamedTuple):
    """Where a piece of asynchronous work came from."""

    how: str
    warp: int
    lane: int
    row: int
    cta: int
    offset: int = 0  # of a load: where it writes in the shared memory window
    size: int = 0  # of a load: bytes per barrier that it signals
    first: int = 0  # of a load: the first byte it writes; rows of one gather4 share their offset


class History(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter
        self.barriers: dict[tuple[int, int], BarrierHistory] = {}
        self.signalled: dict[int, list] = {}  # warp -> barriers that it arrived on or committed to, in order
        self.awaited: dict[int, list] = {}  # warp -> barriers that it reached a wait for, in order

    def start(self, cluster: Cluster) -> None:
        self.looks = ignored_questions(cluster.program)  # rows that are no waits
        self.barriers.clear()
        self.signalled.clear()
        self.awaited.clear()

    def mbarrier_init(self, cluster: Cluster, split: Split, lane: int, place) -> None:
        count = cluster.mbarriers[place].expected
        self.barriers[place] = BarrierHistory(split.row, split.warp * 32 + lane, count)

    def mbarrier_arrive(self, cluster: Cluster, split: Split, arrival: Arrival) -> None:
        place, lanes = arrival.place, arrival.lanes
        announces = arrival.announces is not None
        signals = self._signalled(cluster, place, "arrive", split.warp, lanes, split.row, announces)
        if signals is not None:
            signals.makes = max(signals.makes, arrival.arrivals // lanes.bit_count())
        self._armed(cluster, split.warp, lanes, place)
        _next(self.signalled, split.warp, place)

    def mbarrier_blocked(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        _next(self.awaited, split.warp, wait.place)

    def commit_issue(self, cluster: Cluster, split: Split, commit: Commit) -> Origin:
        for place in commit.barriers:
            self._armed(cluster, split.warp, 1 << split.leader, place)
            _next(self.signalled, split.warp, place)
        return Origin("commit", split.warp, split.leader, split.row, split.cta)

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> Origin:
        for place in copy.barriers:
            self._armed(cluster, split.warp, 1 << split.leader, place)
        first = copy.targets[0].first if copy.targets else 0
        issuer = split.warp, split.leader, split.row, split.cta
        return Origin(copy.kind, *issuer, copy.offset, copy.size, first)

    def async_arrive(self, cluster: Cluster, place, token) -> None:
        if token is None or place not in self.barriers:
            return
        self._signalled(cluster, place, token.how, token.warp, 1 << token.lane, token.row)
        if token.how == "load":
            history = self.barriers[place]
            history.bytes_phase = cluster.mbarriers[place].phase
            history.parts.append(token)

    def cp_async_signal(self, cluster: Cluster, split: Split, arrival: CopyArrival) -> None:
        for place in dict.fromkeys(arrival.places):
            self._armed(cluster, split.warp, split.mask, place)
            _next(self.signalled, split.warp, place)

    def cp_async_arrive(
        self, cluster: Cluster, split: Split, place, tokens: list, arrival: CopyArrival
    ) -> None:
        if not arrival.counted:
            self._signalled(cluster, place, "arrive", split.warp, split.mask, split.row)
        elif place in self.barriers:
            neutral = self.barriers[place].neutral.setdefault((split.warp, split.row), Signals())
            neutral.add(split.mask, cluster.mbarriers[place].phase)

    def _signalled(
        self, cluster: Cluster, place, how: str, warp: int, lanes: int, row: int, announces: bool = False
    ) -> Signals | None:
        history = self.barriers.get(place)
        if history is None:
            return None
        signals = history.sources.get((how, warp, row))
        if signals is None:
            signals = history.sources[how, warp, row] = Signals(announces=announces)
        signals.add(lanes, cluster.mbarriers[place].phase)
        return signals

    def _armed(self, cluster: Cluster, warp: int, lanes: int, place) -> None:
        history = self.barriers.get(place)
        if history is not None:
            history.armed[warp, lanes] = cluster.mbarriers[place].phase

    def phase_complete(self, cluster: Cluster, place) -> None:
        history = self.barriers[place]
        history.before, history.parts = history.parts, []

    def mbarrier_wait(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        place, lanes = wait.place, wait.lanes
        if split.row in self.looks:
            return
        _next(self.awaited, split.warp, place)
        history, done = self.barriers[place], cluster.mbarriers[place].phase - 1
        history.seen = max(history.seen, done)
        waits = history.waits.get(split.warp)
        if waits is None:
            fresh = split.row if done < 0 else None
            history.waits[split.warp] = Waits(done, lanes, fresh, None, {split.row})
        else:
            waits.note(done, lanes, split.row)
        history.passed[split.warp, lanes] = done


_KEPT = 24  # barriers kept per warp; repeats in a row count once


def _next(order: dict[int, list], warp: int, place: tuple[int, int]) -> None:
    places = order.setdefault(warp, [])
    if len(places) < _KEPT and (not places or places[-1] != place):
        places.append(place)


def held_waits(cluster: Cluster) -> Iterator[tuple[int, int, Place]]:
    """(warp, row, barrier) of every wait at an mbarrier that holds threads now."""
    for number, wait in cluster.waits.items():
        if wait.kind == "mbarrier":
            yield number // 32, cluster.splits[number].row, wait.detail["place"]


def held_at(cluster: Cluster, places: Collection[Place]) -> set[int]:
    """Warps that are held at a wait for one of these barriers."""
    return {warp for warp, _, place in held_waits(cluster) if place in places}


def ring_of(histories: Iterable[Place], place: Place, array_of: Callable[[int], str]) -> list[Place]:
    """The elements of the array that a barrier belongs to; array_of maps an offset to its array."""
    array = array_of(place[1])
    return [p for p in histories if p[0] == place[0] and array_of(p[1]) == array]


def signals_by(histories: dict, places: Iterable[Place], warp: int) -> list[tuple[int, Signals]]:
    """(row, signals) of everything a warp has signalled on these barriers, except by loads."""
    sources = (source for p in places for source in histories[p].arrivals.items())
    return [(row, signals) for (_, by, row), signals in sources if by == warp]


def times_signalled(histories: dict, places: Iterable[Place], warp: int) -> int:
    """How often each signalling thread of a warp has signalled these barriers, except by loads."""
    return sum(signals.each for _, signals in signals_by(histories, places, warp))


def times_waited(histories: dict, places: Iterable[Place], warp: int) -> int:
    """How many waits of a warp have passed on these barriers."""
    return sum(histories[p].waits[warp].count for p in places if warp in histories[p].waits)


def history_of(cluster: Cluster) -> dict[tuple[int, int], BarrierHistory]:
    """The histories of a cluster's barriers; empty when it runs without checks."""
    history = observer_of(cluster.bus, History)
    return history.barriers if history is not None else {}


def orders_of(cluster: Cluster) -> tuple[dict[int, list], dict[int, list]]:
    """Two maps of each warp to barriers in order: those it signalled, and those it reached a wait for (the
    first 24 of each).
    """
    history = observer_of(cluster.bus, History)
    return (history.signalled, history.awaited) if history is not None else ({}, {})
