"""Does D depend on what a kernel shows? One cluster runs again, and sums are read out as less than they are.

D must come out as much less: all of it if all sums are halved, else the part that they are for. One run has
several experiments: sums of another set of them are halved another number of times. Work whose result goes
nowhere, beside a product that was made in another way, is found so. What the tensor core multiplies is
weighed in the same run: it has to be all of A and B that D is made of, and nothing else. Two MMA warps have
rows of A of their own, or a loaded byte serves more products than in step 9.
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

WHOLE, PART = 0.98, 0.2  # of D, at least
EXACT = 1e-11  # that two sums of the same weights may differ by, relatively: they do by 1e-15
REUSE = 65  # multiply-adds for a loaded byte; step 9's tile makes 64, step 10's 85
MOST_HALVINGS = 7  # of a sum, at most
LEAST = 2.0**-6  # of a number of D that is halved so often: it stays exact in float16


class Chosen(Protocol):
    """Which sums an experiment is for."""

    def __call__(self, events: list[Event], mmas: list[int], lane: str) -> bool:
        """Whether the sum of these MMAs is among them when the warp `lane` reads it."""
        ...


@dataclass(frozen=True)
class EverySum:
    def __call__(self, events: list[Event], mmas: list[int], lane: str) -> bool:
        return True


@dataclass(frozen=True)
class OfPairs:
    """Some MMA of theirs worked in two CTAs: its events stand side by side."""

    def __call__(self, events: list[Event], mmas: list[int], lane: str) -> bool:
        return any(self.of_a_pair(events, mma) for mma in mmas)

    def of_a_pair(self, events: list[Event], mma: int) -> bool:
        issue, cta = events[mma].after[0], events[mma].cta
        beside = (events[n] for n in (mma - 1, mma + 1) if 0 <= n < len(events))
        return any(e.kind == "mma" and e.after[0] == issue and e.cta != cta for e in beside)


@dataclass(frozen=True)
class IssuedBy:
    """Sums that are this warp's alone: its own rows."""

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
    least: float  # part of D that must be half as large, too
    hint: str  # if it is not


class Outcome(NamedTuple):
    """Of some experiments."""

    parts: tuple[float, ...]  # of D that each of them halved
    rows: tuple[np.ndarray, ...]  # in which it halved a number
    weight: float  # of what the tensor core multiplies, as a part of what weighs that of which D is made


def nothing(experiments: int) -> Outcome:
    """Of a cluster that writes nothing."""
    return Outcome((0.0,) * experiments, (np.zeros(0, bool),) * experiments, 0.0)


def experiments(demands: Demands, seen: Evidence | None = None) -> list[Experiment]:
    """`seen`: who multiplies and writes back, where two of each are asked for; not of a cluster alone."""
    paired = pairs in demands
    made = [Experiment(OfPairs() if paired else EverySum(), WHOLE, ALONE if paired else ELSEWHERE)]
    if seen and not seen.alone and two_consumers in demands:
        made += [Experiment(IssuedBy(who), PART, ONE_CONSUMER) for who in consumers(seen)]
        made += [Experiment(ReadBy(group), PART, ONE_WRITER) for group in writers(seen)]
    return made


def useless(demands: Demands, seen: Evidence, tried: Callable[[tuple[Chosen, ...]], Outcome]) -> str:
    """A hint; "" if D depends on everything. All experiments are `tried` at once; one by one if D does not
    come out as it should then, as numbers may that are made of several sums.
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
    """How often each sum is halved: another number for each set of experiments that it belongs to."""

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
        """D as it would be, if all that was `written` came from sums of a single set."""
        made, at = after.copy(), np.flatnonzero(written)
        made.ravel()[at] *= np.float16(2)
        return made

    def outcome(self, before: np.ndarray, after: np.ndarray, written: np.ndarray, weight: float) -> Outcome:
        """D as it is and as it comes out, float16 (M, N), and which of its numbers were written."""
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
    """What the products weigh that the `written` numbers of A @ B.T are made of."""
    alike: dict[bytes, list[int]] = {}  # rows by the columns that are written in them
    for row in np.flatnonzero(written.any(axis=1)).tolist():
        alike.setdefault(written[row].tobytes(), []).append(row)
    total = 0.0
    for rows in alike.values():
        total += weigh(A[rows], B[np.flatnonzero(written[rows[0]])], weights)[0]
    return total
