"""The steps of each thread of a kernel, for same_steps.py to compare: effects, accesses, barriers, fences.

Fences that order nothing are left out. These are a fence of barrier inits by a thread that has initialised no
barrier since its last one, a tcgen05.fence::before_thread_sync by a thread that has issued no tcgen05
operation since its last one, and a tcgen05.fence::after_thread_sync if, up to the thread's next operations,
no other thread has issued a tcgen05 operation: whatever it orders before them comes before them in any run
(PTX ISA 9.7.16.6).

The number of a CTA barrier does not matter if program order separates each of its rounds from the one before,
that is, if every warp of a round waited in the previous round. Then a round is named by its warps.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ptxsim.observing import Observer

ACCESS, SETUP, COPY, PIN, ORDER, FENCE = "access", "setup", "copy", "pin", "order", "fence"
_BEFORE, _AFTER, _INITS = ("tcgen05", False), ("tcgen05", True), "inits"


class Steps(Observer):
    """The steps of every thread of every cluster; passed to a run as its `trace`."""

    def __init__(self, launch, index: int = 0):
        self.threads: dict[tuple[int, int], list[tuple]] = {}  # (cluster, thread) -> (class, what ..)
        self.cluster = -1
        self.bars: dict[tuple, Rounds] = {}  # (cluster, CTA, number of a CTA barrier)
        self.tensor: Counter = Counter()  # cluster -> tcgen05 operations so far; (cluster, thread) -> its own
        self.inits: Counter = Counter()  # (cluster, thread) -> barriers that it has initialised
        self.fenced: dict[tuple, int] = {}  # (kind of fence, cluster, thread) -> how many the last one covers
        # (cluster, thread) -> position of a fence that orders nothing so far
        self.unproven: dict[tuple, int] = {}

    def timeline(self, costs) -> Steps:
        for rounds in self.bars.values():
            rounds.name()
        for who, at in self.unproven.items():
            self.threads[who][at] = ()
        self.threads = {who: [step for step in steps if step] for who, steps in self.threads.items()}
        return self

    def start(self, cluster) -> None:
        self.cluster += 1

    def _those(self, split, mask: int) -> list[tuple[int, int]]:
        return [(self.cluster, split.warp * 32 + lane) for lane in range(32) if mask >> lane & 1]

    def _add(self, split, mask: int, *step) -> None:
        for who in self._those(split, mask):
            self.threads.setdefault(who, []).append(step)

    def _tensor(self, split, mask: int, *step) -> None:
        """Adds a tcgen05 operation: the fence before it is needed if others have issued any."""
        for who in self._those(split, mask):
            if self.tensor[self.cluster] > self.tensor[who]:
                self.unproven.pop(who, None)
            self.tensor[who] += 1
        self.tensor[self.cluster] += 1
        self._add(split, mask, *step)

    def _unless_covered(self, split, kind, counts: Counter, *step) -> None:
        for who in self._those(split, split.mask):
            if self.fenced.get((kind, *who), 0) < counts[who]:
                self.fenced[(kind, *who)] = counts[who]
                self.threads.setdefault(who, []).append(step)

    def accesses(self, cluster, log: np.ndarray) -> None:
        for _, thread, place, kind in log.tolist():
            self.threads.setdefault((self.cluster, thread), []).append((ACCESS, place, kind))

    def fence(self, cluster, split, fence) -> None:
        if fence.inits:
            self._unless_covered(split, _INITS, self.inits, FENCE, *fence)
        else:
            self._add(split, split.mask, FENCE, *fence)

    def tcgen05_fence(self, cluster, split, after: bool) -> None:
        if not after:
            self._unless_covered(split, _BEFORE, self.tensor, FENCE, *_BEFORE)
            return
        for who in self._those(split, split.mask):
            if who in self.unproven:
                self.threads[who][self.unproven[who]] = ()
            self.unproven[who] = len(self.threads.setdefault(who, []))
            self.threads[who].append((FENCE, *_AFTER))

    def wgmma_fence(self, cluster, split) -> None:
        self._add(split, split.mask, FENCE, "wgmma")

    def warp_sync(self, cluster, split, members: int) -> None:
        self._add(split, split.mask, ORDER, "warp", members)

    def bar_arrive(self, cluster, split, arrival) -> None:
        key = self.cluster, split.cta, arrival.number
        if key not in self.bars:
            self.bars[key] = Rounds(self.threads, sum(cluster == self.cluster for cluster, *_ in self.bars))
        places = [(who, len(self.threads.get(who, ()))) for who in self._those(split, split.mask)]
        self.bars[key].arrive(split.warp, arrival.waits, places)
        self._add(split, split.mask, ORDER, "bar", self.bars[key].number, arrival.threads, arrival.waits)

    def bar_complete(self, cluster, cta: int, number: int, waiting: list) -> None:
        self.bars[self.cluster, cta, number].over()

    def cluster_arrive(self, cluster, split, relaxed: bool) -> None:
        self._add(split, split.mask, ORDER, "cluster arrive", relaxed)

    def cluster_wait(self, cluster, split) -> None:
        self._add(split, split.mask, ORDER, "cluster wait")

    def mbarrier_init(self, cluster, split, lane: int, place) -> None:
        self.inits[self.cluster, split.warp * 32 + lane] += 1
        self._add(split, 1 << lane, SETUP, "init", place, cluster.mbarriers[place].expected)

    def mbarrier_arrive(self, cluster, split, arrival) -> None:
        self._add(split, arrival.lanes, PIN, "arrive", *arrival[1:])

    def mbarrier_wait(self, cluster, split, wait) -> None:
        self._add(split, wait.lanes, ORDER, "wait", *wait[1:])

    def tmem_alloc(self, cluster, split, start: int, columns: int, place, group: int) -> None:
        self._tensor(split, split.mask, SETUP, "alloc", start, columns, place, group)

    def tmem_free(self, cluster, split, start: int, columns: int, group: int) -> None:
        self._tensor(split, split.mask, PIN, "free", start, columns, group)

    def tmem_issue(self, cluster, split, cells, write: bool) -> None:
        self._tensor(split, split.mask, PIN, "tmem", write, cells.rank, cells.lane_ends, cells.column_ends)

    def tmem_wait(self, cluster, split, kind: str) -> None:
        self._add(split, split.mask, ORDER, "tmem wait", kind)

    def commit_issue(self, cluster, split, commit) -> None:
        self._tensor(split, 1 << split.leader, PIN, "commit", *commit)

    def tensor_issue(self, cluster, split, work) -> None:
        print_ = work.footprint
        what = work.name, work.accumulates, print_.descriptors, print_.cells_read, print_.cells_written
        self._tensor(split, 1 << split.leader, PIN, *what)

    def copy_issue(self, cluster, split, copy) -> None:
        what = copy.kind, copy.tensor.name, tuple(copy.start), copy.offset, copy.size, copy.barriers
        self._add(split, 1 << split.leader, COPY, *what, tuple(copy.ranks))

    def bulk_commit(self, cluster, split) -> None:
        self._add(split, split.mask, PIN, "group")

    def bulk_wait(self, cluster, split, allowed: int, reading: bool) -> None:
        self._add(split, split.mask, ORDER, "bulk wait", allowed, reading)

    def cp_async_issue(self, cluster, split, reads, writes) -> None:
        for rows in (reads, writes):
            for _, thread, place, kind in np.asarray(rows).reshape(-1, 4).tolist():
                key = self.cluster, thread
                self.threads.setdefault(key, []).append((COPY, "cp.async", place, kind))

    def cp_async_signal(self, cluster, split, arrival) -> None:
        self._add(split, split.mask, PIN, "signal", *arrival)

    def cp_async_wait(self, cluster, split, token) -> None:
        self._add(split, split.mask, ORDER, "cp.async wait")

    def wgmma_issue(self, cluster, split, columns: int, depth: int) -> None:
        self._add(split, split.mask, PIN, "wgmma", columns, depth)

    def wgmma_wait(self, cluster, split, token) -> None:
        self._add(split, split.mask, ORDER, "wgmma wait")


class Rounds:
    """The rounds of one CTA barrier."""

    def __init__(self, threads: dict, number: int):
        self.threads, self.number = threads, number  # in order of use
        self.all: list[list[tuple]] = [[]]  # each round: (warp, whether it waits, positions of its steps)

    def arrive(self, warp: int, waits: bool, places: list[tuple]) -> None:
        self.all[-1].append((warp, waits, places))

    def over(self) -> None:
        self.all.append([])

    def name(self) -> None:
        """Names each round by its warps, if program order separates each from the one before."""
        rounds = [{warp for warp, _, _ in arrivals} for arrivals in self.all]
        waited = [{warp for warp, waits, _ in arrivals if waits} for arrivals in self.all]
        if not all(later <= before for before, later in zip(waited, rounds[1:], strict=False)):
            return
        for warps, arrivals in zip(rounds, self.all, strict=True):
            for who, at in (place for _, _, places in arrivals for place in places):
                kind, bar, _, *others = self.threads[who][at]
                self.threads[who][at] = (kind, bar, tuple(sorted(warps)), *others)
