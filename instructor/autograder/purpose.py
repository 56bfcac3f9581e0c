"""Tests whether D depends on the work that a kernel shows: a cluster runs again, its sums read out halved.

D must be halved with them: all of it if all sums are halved, else the part that those sums are for. This
finds work whose result goes nowhere, beside a product computed in another way. One run makes several
experiments: sums that belong to different sets of experiments are halved a different number of times. The
same run weighs what the tensor core multiplies: it must be all of A and B that D is made of, and nothing
else. Two MMA warps must have rows of A of their own, unless each loaded byte serves more products than in
step 9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np

from instructor.autograder.behaviour import (
    ALONE,
    ELSEWHERE,
    ONE_CONSUMER,
    ONE_WRITER,
    OTHERS,
    SAME_ROWS,
    Demands,
    Evidence,
    consumers,
    pairs,
    two_consumers,
    writers,
)
from instructor.autograder.flow import weigh
from ptxsim.tracing import Event

WHOLE, PART = 0.98, 0.2  # least parts of D that an experiment must halve
EXACT = 1e-11  # relative difference allowed between two sums of the same weights, which differ by 1e-15
REUSE = 65  # multiply-adds per loaded byte; step 9's tile has 64, step 10's 85
MOST_HALVINGS = 7  # of a sum, at most
LEAST = 2.0**-6  # smallest |D| that counts: halved so often, it is still exact in float16


class Chosen(Protocol):
    """Selects the sums that an experiment halves."""

    def __call__(self, events: list[Event], mmas: list[int], lane: str) -> bool:
        """Whether the sum of these MMAs is halved when the warp `lane` reads it."""
        ...


@dataclass(frozen=True)
class EverySum:
    def __call__(self, events: list[Event], mmas: list[int], lane: str) -> bool:
        return True


@dataclass(frozen=True)
class OfPairs:
    """Sums with an MMA that worked in two CTAs: its two events are adjacent."""

    def __call__(self, events: list[Event], mmas: list[int], lane: str) -> bool:
        return any(self.of_a_pair(events, mma) for mma in mmas)

    def of_a_pair(self, events: list[Event], mma: int) -> bool:
        issue, cta = events[mma].after[0], events[mma].cta
        beside = (events[n] for n in (mma - 1, mma + 1) if 0 <= n < len(events))
        return any(e.kind == "mma" and e.after[0] == issue and e.cta != cta for e in beside)


@dataclass(frozen=True)
class IssuedBy:
    """Sums whose MMAs were all issued by one warp: its own rows."""

    who: tuple[int, str]  # (CTA, warp)

    def __call__(self, events: list[Event], mmas: list[int], lane: str) -> bool:
        issues = (events[events[mma].after[0]] for mma in mmas)
        return all((issue.cta, issue.lane) == self.who for issue in issues)


@dataclass(frozen=True)
class ReadBy:
    group: int  # a warpgroup

    def __call__(self, events: list[Event], mmas: list[int], lane: str) -> bool:
        return int(lane.split()[1]) // 4 == self.group


class Experiment(NamedTuple):
    chosen: Chosen
    least: float  # least part of D that must be halved, too
    hint: str  # if less of D is halved


class Outcome(NamedTuple):
    """The outcome of some experiments."""

    parts: tuple[float, ...]  # the part of D that each of them halved
    rows: tuple[np.ndarray, ...]  # the rows in which each of them halved a number
    weight: float  # of what the tensor core multiplied, relative to that of the product that D is made of


def nothing(experiments: int) -> Outcome:
    """The outcome for a cluster that writes nothing."""
    return Outcome((0.0,) * experiments, (np.zeros(0, bool),) * experiments, 0.0)


def experiments(demands: Demands, seen: Evidence | None = None) -> list[Experiment]:
    """The experiments for these demands.

    `seen` tells which warps multiply and write back, if two of each are demanded; unused for a cluster alone.
    """
    paired = pairs in demands
    made = [Experiment(OfPairs() if paired else EverySum(), WHOLE, ALONE if paired else ELSEWHERE)]
    if seen and not seen.alone and two_consumers in demands:
        made += [Experiment(IssuedBy(who), PART, ONE_CONSUMER) for who in consumers(seen)]
        made += [Experiment(ReadBy(group), PART, ONE_WRITER) for group in writers(seen)]
    return made


def useless(demands: Demands, seen: Evidence, tried: Callable[[tuple[Chosen, ...]], Outcome]) -> str:
    """A hint if D does not depend on all that was seen, else "". All experiments are `tried` at once and, if
    D does not come out as it should, one by one: a number of D may be made of several sums.
    """
    planned = experiments(demands, seen)
    if not _lacking(planned, tried(tuple(one.chosen for one in planned)), seen):
        return ""
    each = [tried((one.chosen,)) for one in planned]
    parts, rows = tuple(one.parts[0] for one in each), tuple(one.rows[0] for one in each)
    return _lacking(planned, Outcome(parts, rows, each[-1].weight), seen)


def _lacking(planned: list[Experiment], outcome: Outcome, seen: Evidence) -> str:
    for one, part in zip(planned, outcome.parts, strict=True):
        if part < one.least:
            return one.hint
    own = [rows for one, rows in zip(planned, outcome.rows, strict=True) if isinstance(one.chosen, IssuedBy)]
    if seen.reuse < REUSE and any((one & other).any() for one, other in combinations(own, 2)):
        return SAME_ROWS
    return OTHERS if abs(outcome.weight - 1) > EXACT else ""


class Halvings:
    """How often each sum is halved: each set of experiments that a sum may belong to has its own number."""

    def __init__(self, chosen: tuple[Chosen, ...]):
        self.chosen = chosen
        self.sets: list[tuple[bool, ...]] = [(False,) * len(chosen)]  # by the number of halvings

    def __call__(self, events: list[Event], mmas: list[int], lane: str) -> int:
        own = tuple(chosen(events, mmas, lane) for chosen in self.chosen)
        if own not in self.sets:
            if len(self.sets) > MOST_HALVINGS:
                return 0
            self.sets.append(own)
        return self.sets.index(own)

    def undone(self, after: np.ndarray, written: np.ndarray) -> np.ndarray:
        """D with one halving undone, as if everything that was `written` came from sums halved once."""
        made, at = after.copy(), np.flatnonzero(written)
        made.ravel()[at] *= np.float16(2)
        return made

    def outcome(self, before: np.ndarray, after: np.ndarray, written: np.ndarray, weight: float) -> Outcome:
        """The outcome: from D without and with halvings, float16 (M, N), and which numbers were written."""
        at = np.flatnonzero(written)
        row, old, new = at // before.shape[1], before.ravel()[at], after.ravel()[at]
        counted = np.isfinite(old) & (np.abs(old) >= LEAST)
        as_often = [counted & (new == old * np.float16(0.5**n)) for n in range(len(self.sets))]
        parts, rows = [], []
        for n in range(len(self.chosen)):
            own = [these for those, these in zip(self.sets, as_often, strict=True) if those[n]]
            halved = np.logical_or.reduce([np.zeros(counted.shape, bool), *own])
            parts.append(float(halved.sum() / max(1, counted.sum())))
            rows.append(np.bincount(row[halved], minlength=len(written)) > 0)
        return Outcome(tuple(parts), tuple(rows), weight)


def weight_of(A: np.ndarray, B: np.ndarray, written: np.ndarray, weights: np.ndarray) -> float:
    """The weight of the products that the `written` numbers of A @ B.T are made of."""
    alike: dict[bytes, list[int]] = {}  # rows by the columns that are written in them
    for row in np.flatnonzero(written.any(axis=1)).tolist():
        alike.setdefault(written[row].tobytes(), []).append(row)
    total = 0.0
    for rows in alike.values():
        total += weigh(A[rows], B[np.flatnonzero(written[rows[0]])], weights)[0]
    return total
