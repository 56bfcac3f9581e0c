"""Is a kernel implemented as its step demands? Judged by what one run of it did, not by its text.

The evidence: the artifact's launch, the counts of the whole grid, and the events of one cluster with what
each of them waited for (ptxsim's Timeline). A demand is a function from the evidence to "" or a hint.
judge.py asks of the first cluster, and of two others what a cluster with a single tile can show.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from ptxsim.trace.schedule import COPIES, LOADS, STORES, TENSOR, Event, Timeline

SMS = 148  # of a B200
MMA_K = 16  # K of one MMA instruction on 16-bit operands


@dataclass
class Evidence:
    """What one run did."""

    timeline: Timeline  # of one cluster
    stats: dict  # of the whole grid
    grid: tuple[int, int, int]
    cluster: tuple[int, int, int]
    size: tuple[int, int, int]  # (M, N, K)
    first: bool = True  # it is the first cluster

    @cached_property
    def ctas(self) -> int:
        return math.prod(self.grid)

    @cached_property
    def macs(self) -> int:
        """Multiply-adds that the product takes."""
        return math.prod(self.size)

    def numbers(self, kind: str, lane: str | None = None, cta: int | None = None) -> list[int]:
        """Events of a kind, by their number."""
        return [
            n
            for n, e in enumerate(self.timeline.events)
            if e.kind == kind and lane in (None, e.lane) and cta in (None, e.cta)
        ]

    def amount(self, kind: str, lane: str | None = None, cta: int | None = None) -> int:
        """Bytes or multiply-adds of all events of a kind."""
        return sum(self.timeline.events[n].amount for n in self.numbers(kind, lane, cta))

    def issued(self, name: str) -> dict[tuple[int, str], list[int]]:
        """(CTA, warp) -> numbers of the events with which it issued something."""
        found = defaultdict(list)
        for n, e in enumerate(self.timeline.events):
            if e.kind == "issue" and e.name == name:
                found[e.cta, e.lane].append(n)
        return found

    @cached_property
    def followers(self) -> dict[int, list[int]]:
        found = defaultdict(list)
        for n, e in enumerate(self.timeline.events):
            for before in (*e.after, *e.read):
                found[before].append(n)
        return found

    def before(self, number: int) -> set[int]:
        """All events that this one waited for."""
        return _closure([number], lambda n: self.timeline.events[n].after)

    def later(self, numbers: Iterable[int]) -> set[int]:
        """All events that waited for one of these."""
        return _closure(numbers, lambda n: self.followers[n])

    @cached_property
    def stages(self) -> float:
        """How many stages are loaded before any MMA has ended, in bytes of what the first MMA waited for."""
        mmas, events = self.numbers("mma"), self.timeline.events
        if not mmas:
            return 0.0
        loads = set(self.numbers("load", LOADS))
        first = sum(events[n].amount for n in loads & self.before(mmas[0]))
        ahead = sum(events[n].amount for n in loads - self.later(mmas))
        return ahead / first if first else 0.0

    @cached_property
    def readers(self) -> dict[tuple[int, str], int]:
        """(CTA, warp) -> bytes of TMEM that it read."""
        found: dict[tuple[int, str], int] = defaultdict(int)
        for n in self.numbers("TMEM read"):
            event = self.timeline.events[n]
            found[event.cta, event.lane] += event.amount
        return found


def _closure(start: Iterable[int], step: Callable) -> set[int]:
    found, new = set(), list(start)
    while new:
        for other in step(new.pop()):
            if other not in found:
                found.add(other)
                new.append(other)
    return found


# ---- demands ----


def tensor_core(seen: Evidence) -> str:
    issues = sum(map(len, seen.issued("tcgen05.mma").values()))
    each = seen.amount("mma") / issues if issues else 0
    if each * seen.stats["tensor_operations"] < 0.99 * seen.macs:
        return "not all of the product comes from the tensor core (tcgen05.mma)"
    return ""


def accumulates(seen: Evidence) -> str:
    """K steps add up in TMEM: each element of D is read from it once, not once for each K tile."""
    elements = seen.amount("mma") / seen.size[2]
    if seen.amount("TMEM read") > 1.5 * 4 * elements:
        return "partial products are read out of TMEM and added elsewhere: let the MMAs accumulate in TMEM"
    return ""


def whole_grid(seen: Evidence) -> str:
    if seen.ctas < 2:
        return "one CTA does everything: launch one CTA for each tile of D"
    share = seen.amount("mma", cta=0) * seen.ctas / seen.macs
    if not 0.99 <= share <= 1.01:
        return "the tiles of D are not spread evenly over the CTAs of the grid: one for each CTA"
    return ""


def by_tma(seen: Evidence) -> str:
    if seen.amount("global read") or seen.numbers("load", COPIES):
        return "threads read A or B themselves: load every byte of them by TMA"
    if seen.amount("global write") or not seen.numbers("store", STORES):
        return "threads write D themselves: store it from shared memory by TMA"
    mine = seen.amount("load", LOADS) + seen.amount("store", STORES)
    if seen.stats["tma_bytes"] * seen.amount("mma") < 0.98 * mine * seen.macs:
        return "some CTAs move A, B or D without TMA"
    return ""


def loads_ahead(seen: Evidence) -> str:
    if seen.stages < 1.9:
        return "no load is in flight while the tensor core works on the stage before it: load one stage ahead"
    return ""


def persistent(seen: Evidence) -> str:
    if seen.ctas != SMS:
        return (
            f"the grid has {seen.ctas} CTAs: launch {SMS}, whatever the size, and let each take tiles in turn"
        )
    if not seen.first:
        return ""
    area = max(event.amount for event in _events(seen, "mma", TENSOR)) / MMA_K  # elements of D of one MMA
    if seen.amount("mma", cta=0) / seen.size[2] < 1.9 * area:
        return "the first CTA works on one tile only: let each CTA take several in turn"
    return ""


def specialised(seen: Evidence) -> str:
    loads, mmas = seen.issued("TMA load"), seen.issued("tcgen05.mma")
    for one, other, what in (
        (loads, mmas, "loads and multiplies"),
        (mmas, seen.readers, "multiplies and writes back"),
        (loads, seen.readers, "loads and writes back"),
    ):
        if set(one) & set(other):
            return f"the same warp {what}: give each role a warp of its own"
    for missing, text in _LINKS.items():
        if (seen.first or missing in _IN_ONE_TILE) and not _linked(seen, *missing):
            return text
    return ""


_LINKS = {  # (what was done, who has to know): what to say if no barrier tells it
    ("load", "MMA"): "the MMA warp does not wait for loads at a barrier that the copies complete",
    (
        "mma",
        "load",
    ): "the loading warp does not wait until the MMAs have read a stage before it overwrites it",
    ("mma", "write-back"): "write-back does not wait for the MMAs at a barrier that their commit completes",
    ("TMEM read", "MMA"): "the MMA warp does not wait until write-back has read TMEM before it overwrites it",
}
_IN_ONE_TILE = {("load", "MMA"), ("mma", "write-back")}


def _linked(seen: Evidence, done: str, role: str) -> bool:
    """Does work of this kind lead, over a barrier, to further work of another warp with the role?"""
    events, workers = seen.timeline.events, _workers(seen, role)
    for n in seen.numbers(done):
        phases = [m for m in _to_phases(seen, n) if events[m].kind == "phase"]
        for wait in (w for phase in phases for w in seen.followers[phase] if events[w].kind == "wait"):
            event = events[wait]
            goes_on = any(
                m > wait or m in seen.later([wait]) for m in workers.get((event.cta, event.lane), ())
            )
            if goes_on and (event.cta, event.lane) != (events[n].cta, events[n].lane):
                return True
    return False


def _to_phases(seen: Evidence, number: int) -> list[int]:
    """What follows an event on its way to a barrier: its commit, or its warp's arrivals."""
    events, found, new = seen.timeline.events, set(), [number]
    lane = events[number].lane
    while new:
        for n in seen.followers[new.pop()]:
            on_the_way = events[n].kind in ("commit", "phase") or (
                events[n].lane == lane and events[n].kind != "wait"
            )
            if n not in found and on_the_way:
                found.add(n)
                if events[n].kind != "phase":
                    new.append(n)
    return sorted(found)


def _workers(seen: Evidence, role: str) -> dict[tuple[int, str], list[int]]:
    """(CTA, warp) -> numbers of the events that make it one of this role."""
    if role != "write-back":
        return seen.issued("TMA load" if role == "load" else "tcgen05.mma")
    found = defaultdict(list)
    for n in seen.numbers("TMEM read"):
        found[seen.timeline.events[n].cta, seen.timeline.events[n].lane].append(n)
    return found


def four_stages(seen: Evidence) -> str:
    if seen.stages < 3.9:
        return f"the loads run {max(seen.stages, 1):.0f} stages ahead of the MMAs: four are asked for"
    return ""


def pairs(seen: Evidence) -> str:
    if math.prod(seen.cluster) < 2:
        return "the kernel launches no clusters: two CTAs work together in this step"
    both = {(e.after[0], e.cta) for e in _events(seen, "mma", TENSOR) if e.after}
    shared = {issue for issue, cta in both if cta == 1} & {issue for issue, cta in both if cta == 0}
    if not shared:
        return "each CTA multiplies for itself: issue MMAs of cta_group 2, which use both tensor cores"
    return ""


def _events(seen: Evidence, kind: str, lane: str) -> list[Event]:
    return [seen.timeline.events[n] for n in seen.numbers(kind, lane)]


def two_consumers(seen: Evidence) -> str:
    issued = {warp: len(n) for (cta, warp), n in seen.issued("tcgen05.mma").items() if cta == 0}
    if len([n for n in issued.values() if n >= 0.25 * sum(issued.values())]) < 2:
        return "one warp issues all MMAs: let two warps multiply, each its own rows of A"
    read: dict[int, int] = defaultdict(int)
    for (cta, warp), size in seen.readers.items():
        if cta == 0:
            read[int(warp.split()[1]) // 4] += size
    if len([n for n in read.values() if n >= 0.25 * sum(read.values())]) < 2:
        return "one warpgroup writes everything back: give each MMA warp its own"
    return ""


_TMA = (tensor_core, by_tma)
DEMANDS: dict[int, tuple[Callable[[Evidence], str], ...]] = {
    1: (tensor_core,),
    2: (tensor_core, accumulates),
    3: (tensor_core, whole_grid),
    4: _TMA,
    5: (*_TMA, loads_ahead),
    6: (*_TMA, persistent),
    7: (*_TMA, specialised),
    8: (*_TMA, specialised, four_stages),
    9: (*_TMA, specialised, pairs),
    10: (*_TMA, specialised, pairs, two_consumers),
}


def unmet(step: int, seen: Evidence) -> str:
    """The first demand of the step that the run does not meet, as a hint; "" if it meets all.

    A cluster other than the first may have nothing to do.
    """
    if not seen.first and not seen.amount("mma"):
        return ""
    return next(filter(None, (demand(seen) for demand in DEMANDS[step])), "")
