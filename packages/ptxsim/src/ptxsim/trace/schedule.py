"""Events of one cluster -> a timeline: what could run at the same time, given the program's synchronisation.

ptxsim has no clock. recorder.py notes what each warp and each hardware unit did, and after which other
events; `schedule` replays these with the ticks of `Costs`: a warp executes its events in order, a unit serves
requests in order of arrival, and an event starts once its lane is free and everything that it waited for has
ended. A timeline shows which events overlap: those that the program did not order. How long a chip takes is
another question: arithmetic, caches, clocks and other CTAs are not modelled.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field, fields

LOADS, COPIES, TENSOR, STORES = "TMA loads", "cp.async", "tensor core", "TMA stores"
BARRIERS = "barriers"
UNITS = (LOADS, COPIES, TENSOR, STORES)  # lanes of a CTA that are no warps; BARRIERS has instants only
WAITS = ("wait", "stuck")


@dataclass(frozen=True)
class Costs:
    """Ticks of each kind of event. The ratios are chosen, not measured; a tick is not a unit of time.

    They are close to the peak rates of a B200's SM: in the time of 4096 MACs of 16 bits, 64 bytes of global
    memory arrive.
    """

    issue: int = 1  # ticks of a warp for what is not below: issuing a copy or an MMA, arrive, commit
    mma: int = 4096  # 16-bit MACs per tick of a tensor core; an instruction has 32 bytes of K in any type
    load: int = 64  # bytes per tick that cp.async and TMA bring to a CTA, one request after another
    store: int = 64  # bytes per tick that TMA stores from a CTA's shared memory
    latency: int = 512  # ticks between global memory and the SM, in addition; requests in flight overlap
    threads: int = 16  # bytes per tick of a warp's own loads and stores of global memory
    shared: int = 128  # bytes per tick of a warp's accesses to shared or tensor memory: a word per lane

    def __post_init__(self):
        for item in fields(self):
            value, least = getattr(self, item.name), 0 if item.name in ("issue", "latency") else 1
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"cost {item.name} is a whole number from {least} on (got {value!r})")

    def of(self, kind: str, amount: int) -> tuple[int, int]:
        """(ticks for which the lane is occupied, ticks from then until the result is there)."""
        if kind in ("load", "store"):
            return _ticks(amount, getattr(self, kind)), self.latency
        if kind == "global read":
            return self.latency + _ticks(amount, self.threads), 0
        rate = {"mma": self.mma, "global write": self.threads}.get(kind)
        rate = self.shared if kind in MOVES else rate
        return (_ticks(amount, rate), 0) if rate else (self.issue if kind == "issue" else 0, 0)


MOVES = ("TMEM read", "TMEM write", "shared read", "shared write")
COST_NAMES = tuple(item.name for item in fields(Costs))


def _ticks(amount: int, rate: int) -> int:
    return -(-amount // rate)


@dataclass
class Event:
    """One action of a lane. Events are referred to by their index in `Timeline.events`."""

    cta: int  # rank in the cluster
    lane: str  # "warp 5", or one of UNITS and BARRIERS
    kind: str  # issue, load, store, mma, commit, phase, wait, stuck, global read / write, one of MOVES
    name: str  # what it is about: "A to Asmem, part 1", "tma2mma[0]"
    amount: int = 0  # bytes, or 16-bit MACs of an mma
    after: list[int] = field(default_factory=list)  # events that must end before this one
    read: list[int] = field(default_factory=list)  # stores that must have read their source before this one
    line: int | None = None  # of the source file
    phase: int | None = None  # of the barrier; -1: before the first, as a producer's first wait asks
    begin: int = 0  # ticks; a wait begins when its warp reaches it
    end: int = 0
    box: str = ""  # of a TMA copy: the part of the matrix, "D[0:128, 64:128]"


@dataclass
class Lane:
    """A row of the timeline, with its shares of the total time."""

    cta: int
    lane: str
    title: str  # "CTA 0 WG1 warp 3 (TMA)"; no CTA if there is only one
    roles: tuple[str, ...]  # of a warp: those of "TMA", "cp.async", "MMA", "write-back" that it did
    busy: float = 0.0  # share: a unit has work in flight, a warp does something
    waiting: float = 0.0  # share: a warp waits
    waits: dict[str, int] = field(default_factory=dict)  # barrier (all stages together) -> ticks, most first


@dataclass
class Timeline:
    """The scheduled events of one cluster as plain data (dataclasses.asdict gives JSON)."""

    events: list[Event]  # in the order in which the simulator reached them
    lanes: list[Lane]  # those with events, in the order of the data path: loads, MMAs, write-back
    ticks: float  # end of the last event
    costs: Costs
    finished: bool  # all threads of the cluster have ended
    cluster: int = 0  # number of the cluster in the grid
    notes: list[str] = field(default_factory=list)  # what the picture leaves out
    unit: str = "ticks"  # of its times; "ns" if a chip's costs gave them (timing/timeline.py)

    def of(self, cta: int, lane: str) -> list[Event]:
        return [e for e in self.events if e.cta == cta and e.lane == lane]

    def overlap(self, cta: int, one: str, other: str) -> int:
        """Ticks in which events of both kinds ("load", "mma", "store", "TMEM read", ..) are in progress."""
        first, second = ([e for e in self.events if e.cta == cta and e.kind == kind] for kind in (one, other))
        a, b = spans(first), spans(second)
        return sum(max(0, min(e, f) - max(s, t)) for s, e in a for t, f in b)


def spans(events: list[Event]) -> list[tuple[int, int]]:
    """The ticks that events cover, as disjoint ascending (begin, end)."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted((e.begin, e.end) for e in events if e.end > e.begin):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found


def schedule(events: list[Event], costs: Costs) -> int:
    """Sets `begin` and `end` of every event; returns the end of the last.

    Events come after those that they wait for. Of several requests to one unit, the earliest is served first.
    """
    missing = [len(e.after) + len(e.read) for e in events]
    followers: list[list[int]] = [[] for _ in events]
    for number, event in enumerate(events):
        for other in (*event.after, *event.read):
            followers[other].append(number)
    free: dict[tuple[int, str], int] = {}
    left = [0] * len(events)  # tick at which the event's source has been read
    ready = [(0, number) for number, count in enumerate(missing) if not count]
    while ready:
        at, number = heapq.heappop(ready)
        event, lane = events[number], (events[number].cta, events[number].lane)
        busy, late = costs.of(event.kind, event.amount)
        event.begin = max(at, free.get(lane, 0)) if event.lane in UNITS and busy else at
        left[number] = event.begin + busy
        event.end = event.begin + busy + late
        if event.lane in UNITS and busy:
            free[lane] = left[number]
        for other in followers[number]:
            missing[other] -= 1
            if not missing[other]:
                then = [events[n].end for n in events[other].after] + [left[n] for n in events[other].read]
                heapq.heappush(ready, (max(then), other))
    return _stretch_waits(events, costs)


def _stretch_waits(events: list[Event], costs: Costs) -> int:
    """A wait begins when its warp's previous event ended; one that never ends lasts until the last tick."""
    last: dict[tuple[int, str], Event] = {}
    ticks = max((e.end for e in events), default=0)
    ticks += costs.latency * any(e.kind == "stuck" for e in events)  # so that it shows
    for event in events:
        if event.lane.startswith("warp"):
            before = last.get((event.cta, event.lane))
            if event.kind in WAITS:
                event.begin = before.end if before else 0
                event.end = ticks if event.kind == "stuck" else event.end
            last[event.cta, event.lane] = event
    return ticks


def summarise(events: list[Event], ticks: float, lane: Lane) -> Lane:
    """Fills in a lane's shares of time."""
    mine = [e for e in events if (e.cta, e.lane) == (lane.cta, lane.lane)]
    busy = spans([e for e in mine if e.kind not in WAITS])
    lane.busy = sum(end - begin for begin, end in busy) / max(ticks, 1)
    waits: Counter[str] = Counter()
    for event in mine:
        if event.kind in WAITS and event.end > event.begin:
            waits[event.name.partition("[")[0]] += event.end - event.begin
    lane.waiting = sum(waits.values()) / max(ticks, 1)
    lane.waits = dict(waits.most_common())
    return lane
