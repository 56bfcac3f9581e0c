"""Does D depend on what a kernel shows? One cluster runs again, and some sums are read out doubled.

D must come out twice as large, too: all of it if all sums are doubled, else the part that they are for. Work
whose result goes nowhere, beside a product that was made in another way, is found so. What the tensor core
multiplies is weighed in the same run: it has to be all of A and B that D is made of, and nothing else.
Two MMA warps have rows of A of their own, or a loaded byte serves more products than in step 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

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

Chosen = Callable[[list[Event], list[int], str], bool]  # as flow.Doubled takes it
WHOLE, PART = 0.98, 0.2  # of D, at least
EXACT = 1e-6  # that two sums of the same weights may differ by
REUSE = 65  # multiply-adds for a loaded byte; step 9's tile makes 64, step 10's 85


def experiments(demands: Demands, seen: Evidence) -> Iterator[tuple[Chosen, float, str]]:
    """(which sums are doubled, the part of D that must be, the hint if it is not)."""
    if pairs in demands:
        yield (lambda events, mmas, lane: any(_of_a_pair(events, mma) for mma in mmas)), WHOLE, ALONE
    else:
        yield (lambda events, mmas, lane: True), WHOLE, ELSEWHERE
    if two_consumers in demands:
        for who in consumers(seen):
            yield _issued_by(who), PART, ONE_CONSUMER
        for group in writers(seen):
            yield _read_by(group), PART, ONE_WRITER


def useless(
    demands: Demands, seen: Evidence, doubled: Callable[[Chosen], tuple[float, float, np.ndarray]]
) -> str:
    """A hint; "" if D depends on everything. `doubled(chosen)`: the part of D that is twice as large then,
    how many times what D is made of the tensor core multiplies, by weight, and which rows are so large.
    """
    weight, own = 1.0, []
    for chosen, least, hint in experiments(demands, seen):
        part, weight, rows = doubled(chosen)
        if part < least:
            return hint
        own += [rows] if hint == ONE_CONSUMER else []
    if seen.reuse < REUSE and any((one & other).any() for one, other in combinations(own, 2)):
        return SAME_ROWS
    return OTHERS if abs(weight - 1) > EXACT else ""


def twice(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of numbers that were written: (those whose double is a number, too; which of them doubled)."""
    with np.errstate(over="ignore", invalid="ignore"):
        double = before * np.float16(2)
    counted = (before != 0) & np.isfinite(double)
    return counted, counted & (after == double)


def weight_of(A: np.ndarray, B: np.ndarray, written: np.ndarray, weights: np.ndarray) -> float:
    """What the products weigh that the `written` numbers of A @ B.T are made of."""
    alike: dict[bytes, list[int]] = {}  # rows by the columns that are written in them
    for row in np.flatnonzero(written.any(axis=1)).tolist():
        alike.setdefault(written[row].tobytes(), []).append(row)
    total = 0.0
    for rows in alike.values():
        total += weigh(A[rows], B[np.flatnonzero(written[rows[0]])], weights)
    return total


def _of_a_pair(events: list[Event], mma: int) -> bool:
    """Whether the instruction worked in two CTAs: its events stand side by side."""
    issue, cta = events[mma].after[0], events[mma].cta
    beside = (events[n] for n in (mma - 1, mma + 1) if 0 <= n < len(events))
    return any(e.kind == "mma" and e.after[0] == issue and e.cta != cta for e in beside)


def _issued_by(who: tuple[int, str]) -> Chosen:
    """Sums that are this warp's alone: its own rows."""

    def chosen(events: list[Event], mmas: list[int], lane: str) -> bool:
        issues = (events[events[mma].after[0]] for mma in mmas)
        return all((issue.cta, issue.lane) == who for issue in issues)

    return chosen


def _read_by(group: int) -> Chosen:
    return lambda events, mmas, lane: int(lane.split()[1]) // 4 == group
