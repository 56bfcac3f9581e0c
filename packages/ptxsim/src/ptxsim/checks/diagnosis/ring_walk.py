"""Signals or waits that stay at one element of a barrier array, and signals that skip one."""

from __future__ import annotations

from itertools import pairwise

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.barrier_history import orders_of, signals_by
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.number_agreement import agree
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.events.records import Place


def leaves_ring(case: Case, place: Place) -> Reason | None:
    """A warp has signalled each element of the ring in order, and then this one, which is not the next."""
    ring = sorted(case.ring(place))
    at = {p: index for index, p in enumerate(ring)}
    signalled, _ = orders_of(case.cluster)
    for warp, order in signalled.items():
        walk = [at[p] for p in order if p in at]
        breaks = (n for n, (a, b) in enumerate(pairwise(walk), 1) if (a + 1) % len(ring) != b)
        first = next(breaks, 0)
        sources = signals_by(case.histories, [place], warp)  # none while its commits are in flight
        if first < max(2, len(ring)) or ring[walk[first]] != place or not sources:
            continue
        row, signals = max(sources, key=lambda source: source[0])
        who = case.role({warp: signals.lanes})
        last, due = (ring[index % len(ring)] for index in (walk[first - 1], walk[first - 1] + 1))
        name = {"name": case.name(place), "array": case.array(place)}
        places = {"last": case.name(last), "due": case.name(due)}
        return reason("leaves-ring", row, who=who, signals=agree(who, "signals"), **name, **places)
    return None


def stays(case: Case, place: Place) -> Reason | None:
    """A warp has signalled this element repeatedly, and nobody any other element of the ring."""
    others = sorted(p for p in case.ring(place) if p != place)
    if not others or any(case.histories[p].sources for p in others):
        return None
    for (_, warp, row), signals in case.histories[place].arrivals.items():
        times = signals.each
        if times <= max(2, case.histories[place].count):
            continue
        who = case.role({warp: signals.lanes})
        names = " or ".join(case.name(p) for p in others[:3])
        return reason("stays", row, who=who, name=case.name(place), times=times, others=names)
    return None


def waits_stay(case: Case, place: Place) -> Reason | None:
    """All waits for this ring are for one other element, and a warp waits again for a phase it has seen."""
    waited = [p for p in case.ring(place) if case.histories[p].waits]
    if len(waited) != 1 or place in waited:
        return None
    for warp, waits in case.histories[waited[0]].waits.items():
        if waits.again is not None:
            who, name = case.role({warp: waits.lanes}), case.name(waited[0])
            text = f"{who} {agree(who, 'waits')} for {name} {waits.count} times: the stage does not move on"
            return Reason(CAUSES["stays"], text, waits.again[1])
    return None
