"""An init that counts more arrivals than come in a phase, although other threads still seem able to come."""

from __future__ import annotations

from ptxsim.checks.diagnosis.deadlock.cause import awaited, barrier_of, stuck
from ptxsim.checks.diagnosis.deadlock.missing_arrivals import arrived_text, rows_of_others
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.reason import Reason


def miscounted(model: Model, waiter: Waiter) -> Reason | None:
    """All who have ever signalled this barrier have come in this phase, and whoever else could come would
    bring more arrivals than are missing.
    """
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None or not 0 < barrier.pending < barrier.expected:
        return None
    here: dict[int, int] = {}
    ever: dict[int, int] = {}
    for (how, warp, _), signals in history.arrivals.items():
        if how != "arrive":
            return None
        ever[warp] = ever.get(warp, 0) | signals.lanes
        if signals.phase == barrier.phase:
            here[warp] = here.get(warp, 0) | signals.lanes
    if any(mask & ~here.get(warp, 0) for warp, mask in ever.items()):
        return None
    others = [_others(model, waiter, other, here) for other in model.waiters]
    if any(0 < count <= barrier.pending for count in others):
        return None
    facts = awaited(model, waiter) | {"arrived": arrived_text(model, waiter, history)}
    return stuck("partial", waiter, **facts)


def _others(model: Model, waiter: Waiter, other: Waiter, came: dict[int, int]) -> int:
    """The arrivals that a group may still bring: the threads that have not come yet, and those that have at
    another line; 1 if the record does not say how many.
    """
    rows, count = rows_of_others(model, waiter), 0
    for warp, mask in other.lanes.items():
        for lanes in (mask & ~came.get(warp, 0), mask & came.get(warp, 0)):
            ahead = model.guards.reach(other.row, warp, lanes) & rows if lanes else set()
            if other.cta != waiter.place[0]:
                ahead = {row for row in ahead if not model.at_home(row)}
            for spot in {model.spot(row) for row in ahead}:
                count += _brings(model, waiter, warp, spot, bool(lanes & came.get(warp, 0)))
    return count


def _brings(model: Model, waiter: Waiter, warp: int, spot, again: bool) -> int:
    """How many lanes of a warp signal this barrier at a line: 0 if the warp has signalled it there already or
    signals only other CTAs there; by the record of other warps if it has not been there.
    """
    array, lanes, ranks = model.array(waiter.place[1]), 0, set()
    for place, history in model.histories.items():
        arrivals = history.arrivals.items() if model.array(place[1]) == array else ()
        for by, signals in ((by, s) for (_, by, row), s in arrivals if model.spot(row) == spot):
            lanes = max(lanes, signals.lanes.bit_count())
            ranks |= {place[0]} if by == warp else set()
            if by == warp and again and place == waiter.place:
                return 0
    if ranks and waiter.place[0] not in ranks:
        return 0
    return lanes or 1
