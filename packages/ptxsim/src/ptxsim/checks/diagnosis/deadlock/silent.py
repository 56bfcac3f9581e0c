"""Waits for a barrier that nobody has signalled or still can: what the rest of its array shows."""

from __future__ import annotations

from ptxsim.checks.barrier_history import BarrierHistory
from ptxsim.checks.diagnosis.deadlock.cause import awaited, barrier_of, stuck
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.number_agreement import agree, of_first_cta
from ptxsim.checks.diagnosis.reason import Reason
from ptxsim.checks.phrases import line_of, lines_text
from ptxsim.events.views import Place


def silent(model: Model, waiter: Waiter) -> Reason | None:
    _, history = barrier_of(model, waiter)
    if history is None or history.sources:
        return None
    if waiter.helpers:
        return _slot_of_others(model, waiter)
    facts = awaited(model, waiter)
    if model.cluster.index and model.cluster.ctas > 1:
        ctas = " and ".join(map(str, model.cluster.cta_ids[:: model.cluster.ctas - 1]))
        return stuck("silent-here", waiter, ctas=ctas, **facts)
    mates = _signalled_mates(model, waiter.place)
    seen = {place: _waits(history, waiter) for place, history in mates.items()}
    others = " and ".join(model.name(place) for place in sorted(mates))
    if mates and not any(seen.values()):
        return stuck("silent-slot", waiter, others=others, **facts)
    if mates and all(count == model.cluster.mbarriers.last(place).phase for place, count in seen.items()):
        return stuck("silent-rest", waiter, others=others, **facts)
    return stuck("silent", waiter, **facts)


def neutral(model: Model, waiter: Waiter) -> Reason | None:
    """What the phase lacks are as many arrivals as those of cp.async that count for nothing."""
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None or not history.neutral or barrier.tx:
        return None
    lanes: dict[int, int] = {}
    for (warp, _), signals in history.neutral.items():
        lanes[warp] = lanes.get(warp, 0) | signals.lanes
    if barrier.pending != sum(mask.bit_count() for mask in lanes.values()):
        return None
    lines = lines_text(sorted({line_of(model.program, row) for _, row in history.neutral})[:3])
    return stuck("neutral", waiter, lines=lines, **awaited(model, waiter))


def _slot_of_others(model: Model, waiter: Waiter) -> Reason | None:
    """The threads that can reach a line that signals this array have always signalled one other element."""
    rows, lanes = model.rows_for(waiter.place), dict[int, int]()
    rounds: list[int] = []
    others: set[Place] = set()
    for place, history in model.histories.items():
        for (_, warp, row), signals in history.arrivals.items():
            if row in rows:
                others.add((waiter.place[0], place[1]))
                lanes[warp] = lanes.get(warp, 0) | signals.lanes
                rounds.append(signals.each)
    coming = {warp for helper in waiter.helpers if helper.waiter for warp in helper.waiter.lanes}
    if len(others) != 1 or min(rounds, default=0) < 2 or not coming <= set(lanes) - set(waiter.lanes):
        return None
    (other,) = others
    answered = set(model.histories[other].waits) if other in model.histories else set()
    if not answered or answered & set(waiter.lanes):  # one of the two sides goes round the array
        return None
    who = model.role(of_first_cta(model.cluster, lanes))
    lines = {model.line(row) for row in rows}
    facts = awaited(model, waiter) | {
        "who": who,
        "come": agree(who, "comes"),
        "signal": agree(who, "signals"),
    }
    line = " or ".join(sorted(map(str, lines)))
    return stuck("slot-of-others", waiter, other=model.name(other), line=line, **facts)


def _signalled_mates(model: Model, own: tuple[int, int]) -> dict[tuple[int, int], BarrierHistory]:
    """The other elements of this barrier's array, in its CTA, that have completed a phase."""
    array = model.reporter.shared_array
    return {
        place: history
        for place, history in model.histories.items()
        if place[0] == own[0] and place != own and array(place[1]) == array(own[1])
        if history.sources and place in model.cluster.mbarriers and model.cluster.mbarriers[place].phase
    }


def _waits(history: BarrierHistory, waiter: Waiter) -> int:
    """How many waits on a barrier the waiting warps have passed, at most."""
    return max((history.waits[warp].count for warp in waiter.lanes if warp in history.waits), default=0)
