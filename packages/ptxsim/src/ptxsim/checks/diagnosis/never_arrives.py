"""A phase that lacks just the threads that take part in the exchange but never arrive."""

from __future__ import annotations

from ptxsim.checks.barrier_history import threads_in
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.number_agreement import agree
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.events.records import Place


def never_arrives(case: Case, place: Place) -> Reason | None:
    """Those who wait for this barrier signal another one, for which threads wait that never arrive here."""
    history, barrier = case.histories[place], case.cluster.mbarriers.last(place)
    arrives = {w for p in case.ring(place) for w in case.histories[p].signallers}
    for other, back in case.histories.items():
        if other == place or not (back.signallers | back.loaders) & history.waits.keys():
            continue
        lanes: dict[int, int] = {}
        for warp, mask in back.passed:
            if warp not in arrives:
                lanes[warp] = lanes.get(warp, 0) | mask
        if lanes and threads_in(lanes) == barrier.pending:
            row = min(row for warp in lanes for row in back.waits[warp].rows)
            who, line = case.role(lanes), case.line(row)
            facts = {"waits": agree(who, "waits"), "arrives": agree(who, "arrives")}
            return reason("never-arrives", row, who=who, other=case.name(other), line=line, **facts)
    return None
