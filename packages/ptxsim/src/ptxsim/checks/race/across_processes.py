"""Races between clusters that ran in different processes (grid/processes.py).

Each process knows what its own clusters, and those before the fork, have done. At the end it hands over a
summary: the byte spans of global memory that its own clusters have touched. Nothing orders clusters that do
not communicate, so two overlapping spans of different processes are a race if one was written, unless both
accesses are strong (PTX ISA 8.7.1) or both are the same store of a constant. If there may be a race, the
clusters run again in one process, where the race detector sees each access.
"""

from __future__ import annotations

import itertools

import numpy as np

from ptxsim.checks.race.conflict import VERBS
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.shadow_bytes import (  # fmt: skip
    CLUSTER,
    ENTRY,
    NEXT,
    OLDER,
    PAGE,
    PAGE_BITS,
    READ,
    TAGS,
    WRITE,
    bits_of,
)
from ptxsim.checks.race.shadow_order import (
    CONSTANT,
    NARROW_BIT,
    READ_WRITE,
    ROW_MASK,
    STRONG_BIT,
)
from ptxsim.checks.race.shadow_own import TAG_BITS, TAG_MASK
from ptxsim.checks.race.tma_ranges import merged
from ptxsim.events.observer import observer_of
from ptxsim.jit.compiled import compiled

FIRST, LAST, WHAT = range(3)  # columns of a summary: span, kind and row of the access
KIND = STRONG_BIT | NARROW_BIT | ROW_MASK  # bits of an entry that WHAT keeps


def detector(checker) -> RaceDetector | None:
    return observer_of(checker, RaceDetector)


def summary(checker, clusters) -> dict[str, np.ndarray]:
    """What these clusters, the last that ran here, have written and read, each as int64 (n, 3) in
    ascending order: first byte, last byte + 1 (positions in the shadow), kind and row of the access.
    """
    races = detector(checker)
    if races is None:
        return {}
    mine = np.zeros(len(races.history.others.latest), np.uint8)
    mine[[c + 1 for c in clusters]] = 1
    s = races.history.memory
    write, read = (_touched(s.level, s.start, s.region, s.records, s.links, mine, w) for w in (True, False))
    read = np.concatenate([read, *_kept(races.history.reads, mine)])
    return {"write": write, "read": read[np.argsort(read[:, FIRST])]}


def _kept(reads, mine: np.ndarray):
    """The same for reads that have not been looked up (deferred_reads.py), buffer by buffer."""
    for kept in reads.kept.values():
        boxes = {(id(tmap), start): (row, tmap) for now, _, _, row, _, tmap, start in kept if mine[now]}
        each = [reads.spans(tmap, start) for (_, start), (_, tmap) in boxes.items()]
        if not sum(map(len, each)):
            continue
        spans = merged(np.concatenate(each))
        row, _ = next(iter(boxes.values()))
        out = np.empty((len(spans), 3), np.int64)
        out[:, [FIRST, LAST]] = spans
        out[:, WHAT] = row
        yield out


@compiled()
def _touched(level, start, region, records, links, mine, write):
    out, n = np.empty((1024, 3), np.int64), 0
    for page in range(len(start)):
        if start[page] < 0:
            continue
        bits = bits_of(level[page])
        for i in range(PAGE >> bits):
            r = region[start[page] + i]
            entry = _last(records, links, r, mine, write)
            if entry == 0:
                continue
            first = (page << PAGE_BITS) + (i << bits)
            what, before = entry & KIND, out[n - 1] if n else out[0]
            if n and before[LAST] == first and before[WHAT] == what:
                before[LAST] = first + (1 << bits)
                continue
            if n == len(out):
                out = np.concatenate((out, np.empty_like(out)))
            out[n, FIRST], out[n, LAST], out[n, WHAT] = first, first + (1 << bits), what
            n += 1
    return out[:n]


@compiled()
def _last(records, links, r, mine, write):
    """The entry of a write or read of a region by clusters of `mine`; of a plain write if there is one.
    0: none.
    """
    tags = records[r, TAGS]
    entry, tag = (records[r, WRITE], tags & TAG_MASK) if write else (records[r, READ], tags >> TAG_BITS)
    link = records[r, OLDER] if write else 0
    while link:  # writes before the last one, which is strong
        if not links[link, ENTRY] & STRONG_BIT and mine[links[link, CLUSTER]]:
            return links[link, ENTRY]
        link = links[link, NEXT]
    return entry if mine[tag] else np.int64(0)


def conflict(checker, summaries: list[dict[str, np.ndarray]]) -> bool:
    """Whether clusters of different processes may conflict."""
    races = detector(checker)
    return races is not None and any(
        _conflict(races, one[before], other[after])
        for one, other in itertools.combinations(summaries, 2)
        for code, (before, after) in VERBS.items()
        if code <= READ_WRITE
    )


def _conflict(races: RaceDetector, first: np.ndarray, second: np.ndarray) -> bool:
    """Whether spans of the two overlap that conflict."""
    a, b = _overlaps(first, second)
    pairs = np.unique(np.stack([first[a, WHAT], second[b, WHAT]], axis=1), axis=0)
    return not all(_excused(races, *pair) for pair in pairs.tolist())


def _overlaps(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices of spans that overlap; the spans of each side ascend and are disjoint."""
    low = np.searchsorted(second[:, LAST], first[:, FIRST], "right")
    high = np.searchsorted(second[:, FIRST], first[:, LAST], "left")
    counts = np.maximum(high - low, 0)
    a = np.repeat(np.arange(len(first)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return a, np.repeat(low, counts) + within


def _excused(races: RaceDetector, one: int, two: int) -> bool:
    strong = one & two & STRONG_BIT and not (one | two) & NARROW_BIT
    return bool(strong) or (one == two and bool(races.history.kinds[one & ROW_MASK] & CONSTANT))
