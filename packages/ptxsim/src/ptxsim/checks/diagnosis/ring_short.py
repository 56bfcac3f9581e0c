"""A barrier array with fewer elements than rounds in flight: its phases run ahead of its waiters."""

from __future__ import annotations

from ptxsim.checks.barrier_history import held_at
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.number_agreement import agree
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.events.records import Place
from ptxsim.machine.register_files import WHOLE_WARP


def ring_short(case: Case, place: Place) -> Reason | None:
    """The barrier that holds its signaller back, signalled by its waiters, has more elements than its own
    array. So more rounds can run ahead of the wait than a parity can tell apart.
    """
    ring = case.ring(place)
    waiters = {warp for p in ring for warp in case.histories[p].waits} | held_at(case.cluster, ring)
    for _, warp, row in case.histories[place].arrivals:
        for back in () if warp in waiters else case.histories:
            answers = case.ring(back)
            used = [p for p in answers if warp in case.histories[p].waits]
            if back in ring or len(used) <= len(ring):
                continue
            if {w for p in used for _, w, _ in case.histories[p].sources} <= waiters:
                who = case.role({warp: WHOLE_WARP})
                names = {"array": case.array(place), "other": case.array(back)}
                numbers = {"count": _elements(len(ring)), "more": len(used)}
                return reason("ring-short", row, who=who, signals=agree(who, "signals"), **numbers, **names)
    return None


def _elements(number: int) -> str:
    return f"{number} element{'s' * (number > 1)}"
