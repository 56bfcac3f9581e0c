"""order="all": repeats a launch in different orders of those operations whose order can matter.

The happens-before checks cover every interleaving in which threads do the same things. If threads act
differently because another came first (results of atomics, polled words, waits that time out, arrivals whose
phase depends on timing), one run shows only one case. So further runs give some warps precedence over others
and delay operations: one at a time, with and without a precedence, then two at a time. Operations of
different lines come first, repetitions in loops later. At most `MOST` runs are made; the sets of operations
that were never delayed are counted and reported.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from ptxsim.machine.late_operations import Late, Operation, hangs_on_order
from ptxsim.machine.launch_view import Launch
from ptxsim.report.findings import Reporter
from ptxsim.report.merging import SEVERITIES, absorb

MOST = 128  # runs
TOGETHER = 2  # largest number of operations delayed in one run
_FEW = 4  # up to this many warps, every precedence is tried; with more, each warp is tried as first and last
_BASES = ("program", "adverse")


def run_every_order(launch: Launch, run: Callable):
    """Runs the launch in many orders; returns one Part with all findings. run(order) runs the launch once and
    returns its Part. Memory ends up as the first run left it.
    """
    before = launch.memory.copies()
    order = Late(_BASES[0])
    first = _again(launch, before, run, order)
    left, seen = launch.memory.copies(), dict(order.seen)
    for base in _BASES[1:]:
        order = Late(base)
        _add(first, _again(launch, before, run, order))
        seen |= order.seen
    hangs = hangs_on_order(launch.program) or _by_luck(first)
    others, tried = _all(launch, seen) if hangs else (), []
    for late in itertools.islice(others, MOST - len(_BASES)):
        if _wrong(first):
            break
        tried.append(late)
        _add(first, _again(launch, before, run, late))
    launch.memory.restore(left)
    choices = sum([math.comb(len(seen), n) for n in range(1, TOGETHER + 1)]) if hangs else 0
    held = {late.operations for late in tried if late.operations}
    left_out = 0 if _wrong(first) else choices - len(held)
    first.stats["orders"] = {"run": len(tried) + len(_BASES), "left_out": left_out, "hangs": hangs}
    return first


def _wrong(part) -> bool:
    return any(finding.severity == SEVERITIES[0] for finding in part.reporter.by_identity.values())


def _by_luck(part) -> bool:
    """Whether a `review` finding says that another order of arrivals would complete other phases."""
    return any(f.evidence.get("luck") or f.evidence.get("ahead") for f in part.reporter.by_identity.values())


def _again(launch: Launch, before, run: Callable, order: Late):
    launch.memory.restore(before)
    return run(order)


def _add(first, part) -> None:
    absorb(first.reporter, Reporter.of(part.reporter.by_identity))


def _ranked(launch: Launch) -> Iterator[Late]:
    """Orders in which some warps take precedence over others."""
    warps = launch.ctas_per_cluster * launch.warps_per_cta
    if warps <= _FEW:
        yield from (Late("program", ranks=ranks) for ranks in itertools.permutations(range(warps)))
        return
    for warp, first in itertools.product(range(min(warps, MOST // 8)), (-1, warps)):
        yield Late("program", ranks=(*range(warp), first, *range(warp + 1, warps)))


def _all(launch: Launch, seen: dict[Operation, int]) -> Iterator[Late]:
    """All orders to try. The two numerous kinds alternate: a delay with a precedence, several delays."""
    yield from _ranked(launch)
    yield from _held(seen, 1)
    both = (replace(one, ranks=late.ranks) for one in _held(seen, 1) for late in _ranked(launch))
    by_turns = itertools.zip_longest(both, *(_held(seen, count) for count in range(2, TOGETHER + 1)))
    yield from (late for late in itertools.chain.from_iterable(by_turns) if late is not None)


def _held(seen: dict[Operation, int], count: int) -> Iterator[Late]:
    """Orders that delay `count` operations each; the first operation of each warp and line comes first."""
    repeats: dict[tuple, int] = {}
    ranked = []
    for operation, row in sorted(seen.items()):
        key = (*operation[:2], row)
        ranked.append((repeats.setdefault(key, 0), operation))
        repeats[key] += 1
    ranked.sort()
    for chosen in itertools.combinations([operation for _, operation in ranked], count):
        yield Late("program", frozenset(chosen))
