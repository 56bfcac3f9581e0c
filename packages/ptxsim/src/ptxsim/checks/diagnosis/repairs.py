"""Which single repair of a barrier or a wait would order two accesses: each candidate is tried on the record.

A pair is ordered if no thread gets to the second access while the first is held back. A repair works if it
makes that so and the record still runs to its end. Advice is given only if the best repairs are all of one
family.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ptxsim.checks.barrier_history import history_of, ring_of, threads_in
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.replay import Order, RecordReplay, by_warp
from ptxsim.checks.race.async_work import Issued
from ptxsim.checks.race.barrier_record import MOST, BarrierStep, record_of
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.wording import line_of, line_text
from ptxsim.events.views import Cluster
from ptxsim.report.findings import Reporter

PHASE, SLOT, LATE, COUNT = "phase", "slot", "late", "count"
_TRIED = 4  # pairs tried per cluster


class Repair(NamedTuple):
    family: str
    warp: int  # the warp whose wait it changes; -1: none
    row: int
    place: tuple[int, int]  # the barrier that it changes, or whose wait
    order: Order
    counts: dict
    moved: frozenset[int] = frozenset()  # steps that it moves


def only_repair(races: RaceDetector, pair: AccessPair) -> Repair | None:
    """The repair that orders this pair, if its family mends more pairs than any other family does."""
    if races.record.mending is None:
        races.record.mending = _tried(races)
    found = races.record.mending
    mended = Counter((repair.family, repair.row) for repairs in found.values() for repair in repairs)
    most = max(mended.values(), default=0)
    best = {about for about, times in mended.items() if times == most}
    if len({family for family, _ in best}) != 1:
        return None
    return next((r for r in found.get(pair.key, ()) if (r.family, r.row) in best), None)


def _tried(races: RaceDetector) -> dict[tuple, list[Repair]]:
    """The repairs that work, for each of the first few pairs."""
    found: dict[tuple, list[Repair]] = {}
    for pair in races.history.pairs.values():
        first, second = pair.issued
        held = _held(races, first) if first is not None and first.at >= 0 else None
        if held and second is not None and len(found) < _TRIED:
            found[pair.key] = mending(races, held, races.clocks.warp_of(second.thread), second.at)
    return found


def mending(races: RaceDetector, held: frozenset[int], warp: int, at: int) -> list[Repair]:
    """Repairs after which a warp reaches its access at step `at` only once the held steps have signalled."""
    steps, counts = races.clocks.steps, races.record.counts
    if not 0 <= at < MOST or not races.record.whole:
        return []
    order = by_warp(steps)
    if not _reached(order, counts, held, warp, _mark(steps, warp, at)):
        return []
    # what a repaired wait is for may not be on record yet
    upto = races.record.taken if len(steps) < MOST else MOST * 3 // 4
    done = {number for number in RecordReplay(order, counts).done if number < upto}
    return [
        repair
        for repair in _repairs(races, order, counts)
        if not _reached(repair.order, repair.counts, held, warp, _mark(steps, warp, at, repair.moved))
        and done & _known(repair.order, upto) <= RecordReplay(repair.order, repair.counts).done
    ]


def late_wait(cluster: Cluster, warp: int, arrays: set[str], reporter: Reporter) -> Reason | None:
    """A warp's MMAs read before the loads (which signal these barrier arrays) have filled their operands:
    whether the only repair is to move the wait up.
    """
    record = record_of(cluster)
    if record is None:
        return None
    races, steps = record.races, record.steps
    at = next((n for n, step in enumerate(steps) if step.warp == warp and step.kind == "use"), -1)
    loads = ((n, reporter.shared_array(s.places[0][1])) for n, s in enumerate(steps) if s.kind == "load")
    first = next((n for n, array in loads if array in arrays), None)
    found = mending(races, frozenset() if first is None else frozenset({first}), warp, at)
    other = any(reporter.shared_array(repair.place[1]) not in arrays for repair in found)
    if {repair.family for repair in found} != {LATE} or other:
        return None
    name, row = reporter.shared_name(found[0].place[1]), found[0].row
    return reason("wait-late", row, name=name, line=line_text(races, row))


def _known(order: Order, upto: int) -> set[int]:
    """The steps of each warp up to its first one past the end of the run: that one may wait for something
    that is not on record, and so may all after it.
    """
    before = (itertools.takewhile(lambda step: step[0] < upto, steps) for steps in order.values())
    return {number for steps in before for number, _ in steps}


def _held(races: RaceDetector, first: Issued) -> frozenset[int]:
    """Steps whose signals show that the first access is done."""
    steps, warp = races.clocks.steps, races.clocks.warp_of(first.thread)
    if first.kind == "load":
        return frozenset({first.at})
    behind = (n for n, s in enumerate(steps) if n >= first.at and s.warp == warp and s.kind == "commit")
    return frozenset(behind) if first.kind == "mma" else frozenset()


def _mark(steps: list[BarrierStep], warp: int, at: int, moved=frozenset()) -> int:
    """A warp's first step after what it issued at step `at`, not counting the steps that a repair moves."""
    return next((n for n in range(at, len(steps)) if steps[n].warp == warp and n not in moved), len(steps))


def _reached(order: Order, counts: dict, held, warp: int, mark: int) -> bool:
    """Whether a warp reaches one of its steps while some signals are held back."""
    numbers = [number for number, _ in order.get(warp, ())]
    upto = numbers.index(mark) if mark in numbers else len(numbers)
    return set(numbers[:upto]) <= RecordReplay(order, counts, held).done


def _repairs(races: RaceDetector, order: Order, counts: dict) -> Iterator[Repair]:
    """For each line with a wait: the other parity, alternating parities, other elements, moving it up. Then,
    for each barrier, the count that fits its arrivals.
    """
    lines: dict = {}
    for steps in order.values():
        for number, step in steps:
            if step.kind == "wait":
                lines.setdefault(line_of(races, step.row), {})[number] = step
    for waits in lines.values():
        first = next(iter(waits.values()))
        about = first.warp, first.row, first.places[0]
        for turned in (_other_parity, _in_turn):
            yield Repair(PHASE, *about, _with(order, turned(waits)), counts)
        ring = _ring(races, first.places[0])
        for by in range(1, len(ring)):
            yield Repair(SLOT, *about, _with(order, _shifted(waits, ring, by)), counts)
        moved = _moved_up(order, waits)
        number = next(iter(waits))
        if [n for n, _ in moved[first.warp]].index(number) < [n for n, _ in order[first.warp]].index(number):
            yield Repair(LATE, *about, moved, counts, frozenset(waits))
    for place, count in _counts(races, counts).items():
        yield Repair(COUNT, -1, -1, place, order, counts | {place: count})


def _other_parity(waits: dict[int, BarrierStep]) -> dict[int, BarrierStep]:
    return {n: s._replace(amount=s.amount ^ 1) for n, s in waits.items()}


def _in_turn(waits: dict[int, BarrierStep]) -> dict[int, BarrierStep]:
    """The waits with parities that alternate on each barrier, from the first one asked for."""
    asked: dict = {}
    changed = {}
    for number, step in waits.items():
        who = step.warp, step.places[0]
        parity = asked.get(who, step.amount)
        changed[number], asked[who] = step._replace(amount=parity), parity ^ 1
    return changed


def _shifted(waits: dict[int, BarrierStep], ring: list, by: int) -> dict[int, BarrierStep]:
    inside = {n: s for n, s in waits.items() if s.places[0] in ring}
    return {
        n: s._replace(places=(ring[(ring.index(s.places[0]) + by) % len(ring)],)) for n, s in inside.items()
    }


def _with(order: Order, changed: dict[int, BarrierStep]) -> Order:
    return {w: [(n, changed.get(n, s)) for n, s in steps] for w, steps in order.items()}


def _moved_up(order: Order, waits: dict[int, BarrierStep]) -> Order:
    """The order with each of these waits before the first use of memory since its warp's previous wait."""
    moved: Order = {}
    for warp, steps in order.items():
        line: list[tuple[int, BarrierStep]] = []
        use: int | None = None
        for number, step in steps:
            line.insert(len(line) if use is None or number not in waits else use, (number, step))
            if step.kind in ("wait", "bar"):
                use = None
            elif use is None and step.kind in ("use", "load"):
                use = len(line) - 1
        moved[warp] = line
    return moved


def _ring(races: RaceDetector, place: tuple[int, int]) -> list[tuple[int, int]]:
    """The elements of the array that a barrier belongs to."""
    return sorted(ring_of(history_of(races.cluster), place, races.reporter.shared_array))


def _counts(races: RaceDetector, counts: dict) -> dict:
    """Barrier -> number of arriving threads, if init(count) differs from it."""
    found = {}
    for place, history in history_of(races.cluster).items():
        threads = threads_in(history.arriving())
        if threads and place in counts and threads != counts[place]:
            found[place] = threads
    return found
