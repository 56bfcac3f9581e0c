"""Whether a kernel is implemented as its step demands, judged by what one run did, not by its text.

The evidence: the artifact's launch, the counts of the whole grid, and the events of one cluster, with what
each of them waited for and which bytes it used (flow.py). Overlap is measured on a replay (replay.py). Only
MMAs whose sums are read count. A demand is a function from the evidence to "" or a hint. A step adds its own
to those of the step before. judge.py tests three clusters; purpose.py tests whether D depends on what was
seen.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from instructor.autograder.families import SMS
from instructor.autograder.flow import Traced
from instructor.autograder.replay import Pace, Replay
from ptxsim.tracing import COPIES, LOADS, STORES, TENSOR, Event

ZEROS = 1.1  # a sum counts as at most this times (its multiply-adds without zeros) / K numbers of D
BUSY = 0.9  # least part of a tile's time that the tensor core works if loads run as far ahead as asked
LOST = 0.5  # load latencies, at most, that may be lost from one tile to the next
MOST = 2.5  # times the needed multiply-adds, at most: a tile may extend past the edge of D
HEIGHTS = 64, 128, 256, 512  # possible heights of a tile whose area is known
DEEP = 96 << 10  # bytes that loads must run ahead from step 9 on, as three stages of 32 KiB do


@dataclass
class Evidence:
    """What one run did."""

    timeline: Traced  # of one cluster
    stats: dict  # of the whole grid
    grid: tuple[int, int, int]
    cluster: tuple[int, int, int]
    size: tuple[int, int, int]  # (M, N, K)
    first: bool = True  # it is the first cluster
    sms: int = SMS  # SMs for which the kernel was built
    alone: bool = False  # no other cluster was run

    @cached_property
    def ctas(self) -> int:
        return math.prod(self.grid)

    @cached_property
    def macs(self) -> int:
        """Multiply-adds that the product takes."""
        return math.prod(self.size)

    @cached_property
    def tiles(self) -> list[int]:
        """For each warp that multiplies, how many tiles it works on, one after the other."""
        return [len(tiles) for tiles in self.replay.tiles.values()]

    def numbers(self, kind: str, lane: str | None = None, cta: int | None = None) -> list[int]:
        """Numbers of the events of a kind; of MMAs only those whose sums are read."""
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
        """(CTA, warp) -> numbers of its issues of `name`; of MMAs only those whose sums are read."""
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

    def later(self, number: int) -> Iterator[int]:
        """All events that waited for this one, directly or indirectly, each once."""
        found, new = set(), [number]
        while new:
            for other in self.followers[new.pop()]:
                if other not in found:
                    found.add(other)
                    new.append(other)
                    yield other

    @cached_property
    def replay(self) -> Replay:
        return Replay(self.timeline)

    def pace(self, stages: float) -> Pace:
        """What the MMAs lose if a load takes as long as the MMAs of `stages` - 1 stages."""
        if stages not in self.paces:
            self.paces[stages] = self.replay.pace(stages - 1)
        return self.paces[stages]

    @cached_property
    def paces(self) -> dict[float, Pace]:
        return {}

    @cached_property
    def ring(self) -> int:
        """Stages of the ring that the loads act like: the most at which the MMAs stay busy in the replay."""
        return next((n - 1 for n in range(2, 9) if self.pace(n).inside < BUSY), 8)

    @property
    def tile(self) -> float:
        """Numbers of D whose sums a cluster holds at once, in all of its CTAs; taken from the cluster that
        holds most, as a tile at the edge may have fewer.
        """
        return max(self.held, self.stats.get("held", 0))

    @cached_property
    def held(self) -> float:
        """The same for this cluster. Cells with too few multiply-adds, as of zeros, do not count."""
        open_now: dict[int, float] = defaultdict(float)
        for one in self.timeline.held:
            numbers = min(one.cells, ZEROS * one.macs / self.size[2])
            open_now[one.begin] += numbers
            open_now[one.end] -= numbers
        return max(1, round(max(accumulate(open_now[at] for at in sorted(open_now)), default=0)))

    @cached_property
    def reuse(self) -> float:
        """Multiply-adds for each byte that was loaded for MMAs."""
        return self.replay.macs / max(1, sum(self.replay.stages))

    @cached_property
    def served(self) -> float:
        """Multiply-adds for each byte that TMA moved; fewer in a tile that extends past the edge of D."""
        return self.amount("mma") / max(1, self.amount("load", LOADS) + self.amount("store", STORES))

    @property
    def share(self) -> float:
        """Tiles of D for each cluster, on average."""
        return math.prod(self.size[:2]) / self.tile / (self.ctas // math.prod(self.cluster))

    @property
    def least(self) -> float:
        """The least part of D that each cluster computes if tiles are dealt out evenly."""
        return 0.99 * int(self.share) * self.tile / math.prod(self.size[:2])

    @property
    def several(self) -> bool:
        """Whether there are so many tiles that this cluster can be expected to take a second one."""
        return self.share >= 2 if self.alone else self.share > 1

    @cached_property
    def readers(self) -> dict[tuple[int, str], int]:
        """(CTA, warp) -> bytes of TMEM that it read."""
        found: dict[tuple[int, str], int] = defaultdict(int)
        for n in self.numbers("TMEM read"):
            event = self.timeline.events[n]
            found[event.cta, event.lane] += event.amount
        return found


# ---- demands ----


ELSEWHERE = "not all of the product comes from the tensor core (tcgen05.mma)"
OTHERS = "the tensor core multiplies other numbers than those of A and B that the product needs"
NEEDLESS = "most of what the tensor core multiplies is not part of the product"


def tensor_core(seen: Evidence) -> str:
    issues = sum(map(len, seen.issued("tcgen05.mma").values()))
    each = seen.amount("mma") / issues if issues else 0
    made = each * seen.stats["tensor_operations"]
    if made < 0.99 * seen.macs:
        return ELSEWHERE
    return NEEDLESS if made > MOST * seen.macs else ""


def accumulates(seen: Evidence) -> str:
    """K steps add up in TMEM: each element of D is read from it once, not once for each K tile."""
    if seen.timeline.taken > 1.5 * seen.amount("mma") / seen.size[2]:
        return "partial products are read out of TMEM and added elsewhere: let the MMAs accumulate in TMEM"
    return ""


def several_ctas(seen: Evidence) -> str:
    return "one CTA does everything: launch one CTA for each tile of D" if seen.ctas < 2 else ""


def balanced(seen: Evidence) -> str:
    """No cluster has more tiles than its fair share on the whole chip, plus one if all have several."""
    whole, busiest, tiles = seen.stats["tensor_operations"], seen.stats["busiest"], _tiles(seen)
    fair = math.ceil(tiles / (seen.sms // math.prod(seen.cluster)))
    most = (fair + 1) / tiles if fair > 1 else seen.tile / math.prod(seen.size[:2])
    if busiest > 1.01 * most * whole:
        return "a few CTAs do most of the work: let all of them take tiles of D"
    return ""


def _tiles(seen: Evidence) -> int:
    """Tiles of D: as many as MMAs were issued for, but no more than needed if some extend past its edge."""
    rows, columns = seen.size[:2]
    least = math.ceil(rows * columns / seen.tile)
    most = max(math.ceil(rows / h) * math.ceil(columns * h / seen.tile) for h in HEIGHTS)
    issues = sum(map(len, seen.issued("tcgen05.mma").values())) / max(seen.tiles, default=1)
    return max(least, min(most, math.ceil(seen.stats["tensor_operations"] / max(issues, 1) - 0.01)))


def by_tma(seen: Evidence) -> str:
    if seen.amount("global read") or seen.numbers("load", COPIES):
        return "threads read A or B themselves: load every byte of them by TMA"
    if seen.amount("global write") or not seen.numbers("store", STORES):
        return "threads write D themselves: store it from shared memory by TMA"
    if seen.stats["tma_bytes"] * max(seen.served, seen.stats.get("served", 0)) < 0.98 * seen.macs:
        return "some CTAs move A, B or D without TMA"
    return ""


def loads_ahead(seen: Evidence) -> str:
    """The load of each stage is in flight while the tensor core works on the stage before."""
    pace = seen.pace(2)
    if pace.inside < 0.6:
        return "no load is in flight while the tensor core works on the stage before it: load one stage ahead"
    if pace.inside < BUSY:
        return "many loads wait until the tensor core has finished all earlier stages: always load one ahead"
    return ""


def across_tiles(seen: Evidence) -> str:
    """The next tile's loads are in flight while this tile is written back."""
    if seen.pace(2).between > LOST:
        return "the next tile's loads wait for the write-back of this tile: let the loading warp run ahead"
    return ""


def persistent(seen: Evidence) -> str:
    if seen.ctas not in (SMS, seen.sms):
        return (
            f"the grid has {seen.ctas} CTAs: launch {SMS}, whatever the size, and let each take tiles in turn"
        )
    if seen.first and seen.several and max(seen.tiles, default=0) < 2:
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
    asked = {("load", "MMA"), ("mma", "write-back")}
    asked |= {("mma", "load")} if max(seen.tiles, default=0) > 1 else set()
    asked |= {("TMEM read", "MMA")} if seen.replay.overwrites else set()
    for missing, text in _LINKS.items():
        if missing in asked and not _linked(seen, *missing):
            return text
    return ""


_LINKS = {  # (work done, role that must wait for it): the hint if no barrier makes it wait
    ("load", "MMA"): "the MMA warp does not wait for loads at a barrier that the copies complete",
    (
        "mma",
        "load",
    ): "the loading warp does not wait until the MMAs have read a stage before it overwrites it",
    ("mma", "write-back"): "write-back does not wait for the MMAs at a barrier that their commit completes",
    ("TMEM read", "MMA"): "the MMA warp does not wait until write-back has read TMEM before it overwrites it",
}


def _linked(seen: Evidence, done: str, role: str) -> bool:
    """Whether work of this kind leads, through barriers, to later work of another warp with the role.

    Any warp may pass the signal on: a warpgroup may synchronise first, and one of its lanes arrive for all.
    """
    events, workers = seen.timeline.events, _workers(seen, role)
    of_sums = (n for one in seen.timeline.sums for n in one)  # a commit tracks the last MMA, even of zeros
    for n in sorted(of_sums) if done == "mma" else seen.numbers(done):
        for w in seen.later(n):
            who = events[w].cta, events[w].lane
            elsewhere = events[w].kind == "wait" and who != (events[n].cta, events[n].lane)
            if elsewhere and workers.get(who, (w,))[-1] > w:
                return True
    return False


def _workers(seen: Evidence, role: str) -> dict[tuple[int, str], list[int]]:
    """(CTA, warp) -> numbers of the events that give it this role, ascending."""
    if role != "write-back":
        return seen.issued("TMA load" if role == "load" else "tcgen05.mma")
    found = defaultdict(list)
    for n in seen.numbers("TMEM read"):
        found[seen.timeline.events[n].cta, seen.timeline.events[n].lane].append(n)
    return found


def _like(seen: Evidence) -> str:
    return f"the loads run ahead as in a ring of {seen.ring} stages"


def four_stages(seen: Evidence) -> str:
    if seen.pace(4).inside >= BUSY:
        return ""
    return f"{_like(seen)}: four stages are asked for, each refilled as soon as it is free"


def deep(seen: Evidence) -> str:
    """Loads run as far ahead as in step 8: in stages or, if a stage is larger than there, in bytes."""
    asked = min(4.0, max(2.0, DEEP / max(seen.replay.stage_bytes, 1)))
    if seen.pace(asked).inside < BUSY:
        return f"{_like(seen)}: step 8 asks for four stages, here {DEEP >> 10} KiB of loads are enough"
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
SAME_ROWS = "two warps multiply, both the same rows of A: let each have its own"
ONE_WRITER = "one warpgroup writes everything back: give each MMA warp its own"


def consumers(seen: Evidence) -> list[tuple[int, str]]:
    """The (CTA, warp)s that issue at least a quarter of CTA 0's MMAs."""
    issued = {who: len(n) for who, n in seen.issued("tcgen05.mma").items() if who[0] == 0}
    return [who for who, n in issued.items() if n >= 0.25 * sum(issued.values())]


def writers(seen: Evidence) -> list[int]:
    """Warpgroups that read at least a quarter of CTA 0's sums."""
    read: dict[int, int] = defaultdict(int)
    for (cta, warp), size in seen.readers.items():
        if cta == 0:
            read[int(warp.split()[1]) // 4] += size
    return [group for group, n in read.items() if n >= 0.25 * sum(read.values())]


_SUMS = (tensor_core, accumulates)
_TILES = (*_SUMS, several_ctas, balanced)
_TMA = (tensor_core, by_tma, accumulates, several_ctas, balanced)
_PERSISTENT = (*_TMA, persistent)
_ROLES = (*_PERSISTENT, specialised, loads_ahead, across_tiles)
Demands = tuple[Callable[[Evidence], str], ...]
DEMANDS: dict[int, Demands] = {
    1: (tensor_core,),
    2: _SUMS,
    3: _TILES,
    4: _TMA,
    5: (*_TMA, loads_ahead),
    6: (*_PERSISTENT, loads_ahead),
    7: _ROLES,
    8: (*_ROLES, four_stages),
    9: (*_ROLES, deep, pairs),
    10: (*_ROLES, deep, pairs, two_consumers),
}
BEFORE: dict[int, Demands] = {step: DEMANDS.get(step - 1, ()) for step in DEMANDS} | {9: (*_ROLES, deep)}


def unmet(demands: Demands, seen: Evidence) -> str:
    """The first demand that the run does not meet, as a hint; "" if it meets all.

    A cluster other than the first may have nothing to do.
    """
    if not seen.first and not seen.amount("mma"):
        return ""
    return next(filter(None, (demand(seen) for demand in demands)), "")
