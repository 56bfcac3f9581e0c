"""Is a kernel implemented as its step demands? Judged by what one run of it did, not by its text.

The evidence: the artifact's launch, the counts of the whole grid, and the events of one cluster with what
each of them waited for and which bytes it took (flow.py). Only MMAs whose sums are read count. A demand is
a function from the evidence to "" or a hint. judge.py asks of the first cluster, and of two others what a
cluster with a single tile can show; purpose.py asks whether D depends on it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from instructor.autograder.flow import Traced
from instructor.autograder.pipeline import Depths, depths
from ptxsim.trace.schedule import COPIES, LOADS, STORES, TENSOR, Event

SMS = 148  # of a B200
MMA_K = 16  # K of one MMA instruction on 16-bit operands
TMEM = 128 * 512  # numbers that the tensor memory of a CTA holds
ALWAYS, MOSTLY = 0.7, 0.45  # parts of the loads that run as far ahead as they should; in a ring all do


@dataclass
class Evidence:
    """What one run did."""

    timeline: Traced  # of one cluster
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
        """Events of a kind, by their number; MMAs if their sums are read."""
        return [
            n
            for n, e in enumerate(self.timeline.events)
            if e.kind == kind and lane in (None, e.lane) and cta in (None, e.cta)
            if kind != "mma" or n in self.timeline.read_out
        ]

    def amount(self, kind: str, lane: str | None = None, cta: int | None = None) -> int:
        """Bytes or multiply-adds of all events of a kind."""
        return sum(self.timeline.events[n].amount for n in self.numbers(kind, lane, cta))

    def issued(self, name: str) -> dict[tuple[int, str], list[int]]:
        """(CTA, warp) -> numbers of the events with which it issued something of use."""
        useful = {self.timeline.events[n].after[0] for n in self.timeline.read_out}
        found = defaultdict(list)
        for n, e in enumerate(self.timeline.events):
            if e.kind == "issue" and e.name == name and (name != "tcgen05.mma" or n in useful):
                found[e.cta, e.lane].append(n)
        return found

    @cached_property
    def followers(self) -> dict[int, list[int]]:
        found = defaultdict(list)
        for n, e in enumerate(self.timeline.events):
            for before in (*e.after, *e.read):
                found[before].append(n)
        return found

    def later(self, numbers: Iterable[int]) -> set[int]:
        """All events that waited for one of these."""
        return _closure(numbers, lambda n: self.followers[n])

    @cached_property
    def depths(self) -> Depths:
        return depths(self.timeline)

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


ELSEWHERE = "not all of the product comes from the tensor core (tcgen05.mma)"


def tensor_core(seen: Evidence) -> str:
    issues = sum(map(len, seen.issued("tcgen05.mma").values()))
    each = seen.amount("mma") / issues if issues else 0
    if each * seen.stats["tensor_operations"] < 0.99 * seen.macs:
        return ELSEWHERE
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


def balanced(seen: Evidence) -> str:
    """No cluster has far more to do than its share: twice that, or (unless persistent) its TMEM full once."""
    whole, busiest = seen.stats["tensor_operations"], seen.stats["busiest"]
    clusters = seen.ctas // math.prod(seen.cluster)
    full = 0 if seen.ctas == SMS else TMEM * math.prod(seen.cluster) / math.prod(seen.size[:2])
    if busiest > max(2.2 / clusters, full) * whole:
        return "a few CTAs do most of the work: let all of them take tiles of D"
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
    if seen.depths.most < 1.9:
        return "no load is in flight while the tensor core works on the stage before it: load one stage ahead"
    if seen.depths.reached(1.9) < ALWAYS:
        return "many loads wait until the tensor core has worked on all stages before: always load one ahead"
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
    if seen.depths.most < 3.9:
        return f"the loads run {max(seen.depths.most, 1):.0f} stages ahead of the MMAs: four are asked for"
    if seen.depths.reached(3.9) < MOSTLY:
        return "four stages are filled, but many loads wait until more than one of them is free again"
    return ""


ALONE = "each CTA multiplies for itself: issue MMAs of cta_group 2, which use both tensor cores"


def pairs(seen: Evidence) -> str:
    if math.prod(seen.cluster) < 2:
        return "the kernel launches no clusters: two CTAs work together in this step"
    both = {(e.after[0], e.cta) for e in _events(seen, "mma", TENSOR) if e.after}
    shared = {issue for issue, cta in both if cta == 1} & {issue for issue, cta in both if cta == 0}
    if not shared:
        return ALONE
    return ""


def _events(seen: Evidence, kind: str, lane: str) -> list[Event]:
    return [seen.timeline.events[n] for n in seen.numbers(kind, lane)]


def two_consumers(seen: Evidence) -> str:
    if len(consumers(seen)) < 2:
        return ONE_CONSUMER
    if len(writers(seen)) < 2:
        return ONE_WRITER
    return ""


ONE_CONSUMER = "one warp issues all MMAs: let two warps multiply, each its own rows of A"
ONE_WRITER = "one warpgroup writes everything back: give each MMA warp its own"


def consumers(seen: Evidence) -> list[tuple[int, str]]:
    """(CTA, warp) that issue at least a quarter of CTA 0's MMAs."""
    issued = {who: len(n) for who, n in seen.issued("tcgen05.mma").items() if who[0] == 0}
    return [who for who, n in issued.items() if n >= 0.25 * sum(issued.values())]


def writers(seen: Evidence) -> list[int]:
    """Warpgroups that read at least a quarter of CTA 0's sums."""
    read: dict[int, int] = defaultdict(int)
    for (cta, warp), size in seen.readers.items():
        if cta == 0:
            read[int(warp.split()[1]) // 4] += size
    return [group for group, n in read.items() if n >= 0.25 * sum(read.values())]


_TMA = (tensor_core, by_tma, balanced)
DEMANDS: dict[int, tuple[Callable[[Evidence], str], ...]] = {
    1: (tensor_core,),
    2: (tensor_core, accumulates),
    3: (tensor_core, whole_grid, balanced),
    4: _TMA,
    5: (*_TMA, loads_ahead),
    6: (*_TMA, persistent),
    7: (*_TMA, specialised, loads_ahead),
    8: (*_TMA, specialised, four_stages),
    9: (*_TMA, specialised, loads_ahead, pairs),
    10: (*_TMA, specialised, loads_ahead, pairs, two_consumers),
}


def unmet(step: int, seen: Evidence) -> str:
    """The first demand of the step that the run does not meet, as a hint; "" if it meets all.

    A cluster other than the first may have nothing to do, except where each CTA has a tile.
    """
    if not seen.first and not seen.amount("mma") and whole_grid not in DEMANDS[step]:
        return ""
    return next(filter(None, (demand(seen) for demand in DEMANDS[step])), "")
