"""A first round without a wait, followed by a second one whose wait passes on a fresh barrier."""

from __future__ import annotations

from ptxsim.checks.barrier_history import BarrierHistory
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.rivals import index_of
from ptxsim.checks.race.barrier_record import record_of
from ptxsim.events.records import Place


def fresh_late(case: Case, place: Place) -> Reason | None:
    """A warp that signals `place` reaches its first wait for another, still fresh barrier only after it has
    signalled it once; a warp that has signalled it more often does not wait in its rounds.

    In a ring, only the element with the same index proves this: the first lap fills all of them.
    """
    record = record_of(case.cluster)
    if record is None:
        return None
    number = index_of(case, place)
    signalled: dict[int, list[int]] = {}  # warp -> lanes, each time
    waited: set[tuple[int, Place]] = set()
    for step in record.steps:
        if step.kind in ("arrive", "commit") and place in step.places:
            signalled.setdefault(step.warp, []).append(step.lanes)
        if step.kind != "wait":
            continue
        first = [other for other in step.places if (step.warp, other) not in waited]
        waited.update((step.warp, other) for other in first)
        lanes = signalled.get(step.warp, [])
        for other in first if len(lanes) == 1 else ():
            if _fresh(case.histories.get(other), step.warp) and index_of(case, other) == number:
                who = case.role({step.warp: lanes[0]})
                line = case.line(step.row)
                return reason("fresh-late", step.row, who=who, name=case.name(other), line=line)
    return None


def _fresh(history: BarrierHistory | None, warp: int) -> bool:
    """Whether this warp's first wait passed at once, on a fresh barrier."""
    waits = history.waits.get(warp) if history is not None else None
    return waits is not None and waits.fresh is not None
