"""Signals that stay at one element of a barrier array, or that go round it in order and then skip one."""

from __future__ import annotations

from itertools import pairwise

from ptxsim.checks.barrier_history import orders_of, ring_of, signals_by
from ptxsim.checks.diagnosis.number_agreement import agree, role
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.events.records import Place
from ptxsim.events.views import Cluster


def leaves_ring(cluster: Cluster, histories: dict, place: Place, reporter) -> Reason | None:
    """A warp has signalled each element of the ring in order, and then this one, which is not the next."""
    ring = sorted(ring_of(histories, place, reporter.shared_array))
    at = {p: index for index, p in enumerate(ring)}
    signalled, _ = orders_of(cluster)
    for warp, order in signalled.items():
        walk = [at[p] for p in order if p in at]
        breaks = (n for n, (a, b) in enumerate(pairwise(walk), 1) if (a + 1) % len(ring) != b)
        first = next(breaks, 0)
        sources = signals_by(histories, [place], warp)  # none while its commits are in flight
        if first < max(2, len(ring)) or ring[walk[first]] != place or not sources:
            continue
        row, signals = max(sources, key=lambda source: source[0])
        who = role(cluster, {warp: signals.lanes})
        last, due = (ring[index % len(ring)] for index in (walk[first - 1], walk[first - 1] + 1))
        name = {"name": reporter.shared_name(place[1]), "array": reporter.shared_array(place[1])}
        places = {"last": reporter.shared_name(last[1]), "due": reporter.shared_name(due[1])}
        return reason("leaves-ring", row, who=who, signals=agree(who, "signals"), **name, **places)
    return None


def stays(cluster: Cluster, histories: dict, place: Place, reporter) -> Reason | None:
    """A warp has signalled this element repeatedly, and nobody any other element of the ring."""
    others = sorted(p for p in ring_of(histories, place, reporter.shared_array) if p != place)
    if not others or any(histories[p].sources for p in others):
        return None
    for (_, warp, row), signals in histories[place].arrivals.items():
        times = signals.each
        if times <= max(2, histories[place].count):
            continue
        who = role(cluster, {warp: signals.lanes})
        names = " or ".join(reporter.shared_name(p[1]) for p in others[:3])
        return reason("stays", row, who=who, name=reporter.shared_name(place[1]), times=times, others=names)
    return None
