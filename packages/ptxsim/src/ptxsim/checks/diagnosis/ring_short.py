"""A barrier array with fewer elements than rounds in flight: its phases run ahead of its waiters."""

from __future__ import annotations

from ptxsim.checks.barrier_history import held_at, ring_of
from ptxsim.checks.diagnosis.number_agreement import agree, role
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.events.records import Place
from ptxsim.events.views import Cluster
from ptxsim.machine.register_files import WHOLE_WARP


def ring_short(cluster: Cluster, histories: dict, place: Place, reporter) -> Reason | None:
    """The barrier that holds its signaller back, signalled by its waiters, has more elements than its own
    array. So more rounds can run ahead of the wait than a parity can tell apart.
    """
    array_of, history = reporter.shared_array, histories[place]
    ring = ring_of(histories, place, array_of)
    waiters = {warp for p in ring for warp in histories[p].waits} | held_at(cluster, ring)
    for _, warp, row in history.arrivals:
        for back in () if warp in waiters else histories:
            answers = ring_of(histories, back, array_of)
            used = [p for p in answers if warp in histories[p].waits]
            if back in ring or len(used) <= len(ring):
                continue
            if {w for p in used for _, w, _ in histories[p].sources} <= waiters:
                who = role(cluster, {warp: WHOLE_WARP})
                names = {"array": array_of(place[1]), "other": array_of(back[1])}
                numbers = {"count": _elements(len(ring)), "more": len(used)}
                return reason("ring-short", row, who=who, signals=agree(who, "signals"), **numbers, **names)
    return None


def _elements(number: int) -> str:
    return f"{number} element{'s' * (number > 1)}"
