"""order="all": runs a launch again and again until every order of operations that can matter has been tried.

Happens-before covers every interleaving in which threads do the same things. Where threads act differently
because another came first (results of atomics, polled words, waits that give up, arrivals for which luck
decides the phase), one run shows one case only. So warps take precedence over others, and operations are held
back, one at a time, with and without a precedence, and then two: first those of different lines, then what
loops repeat. `MOST` runs are made; the sets of operations that were not held back are counted and reported.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from ptxsim.machine.late_operations import Late, Operation, hangs_on_order
from ptxsim.machine.launch_view import Launch
from ptxsim.report.findings import SEVERITIES, Reporter

MOST = 128  # runs
TOGETHER = 2  # operations held back in one run
_FEW = 4  # up to this many warps every precedence is tried; with more, each comes first and last
_BASES = ("program", "adverse")


def run_every_order(launch: Launch, run: Callable):
    """run(order) runs the launch once and gives its Part; the Part of all, with what the first one left."""
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
    """Whether a review says that another order of arrivals would complete other phases."""
    return any(f.evidence.get("luck") or f.evidence.get("ahead") for f in part.reporter.by_identity.values())


def _again(launch: Launch, before, run: Callable, order: Late):
    launch.memory.restore(before)
    return run(order)


def _add(first, part) -> None:
    first.reporter.absorb(Reporter.of(part.reporter.by_identity, []))


def _ranked(launch: Launch) -> Iterator[Late]:
    """Orders in which warps take precedence."""
    warps = launch.ctas_per_cluster * -(-launch.threads // 32)
    if warps <= _FEW:
        yield from (Late("program", ranks=ranks) for ranks in itertools.permutations(range(warps)))
        return
    for warp, first in itertools.product(range(min(warps, MOST // 8)), (-1, warps)):
        yield Late("program", ranks=(*range(warp), first, *range(warp + 1, warps)))


def _all(launch: Launch, seen: dict[Operation, int]) -> Iterator[Late]:
    """All orders to try; the two kinds that are numerous alternate."""
    yield from _ranked(launch)
    yield from _held(seen, 1)
    both = (replace(one, ranks=late.ranks) for one in _held(seen, 1) for late in _ranked(launch))
    by_turns = itertools.zip_longest(both, *(_held(seen, count) for count in range(2, TOGETHER + 1)))
    yield from (late for late in itertools.chain.from_iterable(by_turns) if late is not None)


def _held(seen: dict[Operation, int], count: int) -> Iterator[Late]:
    """Sets of this many operations to hold back; the first of each warp and line come first."""
    repeats: dict[tuple, int] = {}
    ranked = []
    for operation, row in sorted(seen.items()):
        key = (*operation[:2], row)
        ranked.append((repeats.setdefault(key, 0), operation))
        repeats[key] += 1
    ranked.sort()
    for chosen in itertools.combinations([operation for _, operation in ranked], count):
        yield Late("program", frozenset(chosen))
