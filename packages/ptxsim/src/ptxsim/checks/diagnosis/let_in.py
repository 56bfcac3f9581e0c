"""A thread signals a barrier before its phase is over, because its own wait lets it in too early."""

from __future__ import annotations

from ptxsim.checks.barrier_history import threads_in
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.in_a_row import twice_in_a_row
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.rivals import index_of, one_slot
from ptxsim.checks.race.barrier_record import BarrierStep, record_of
from ptxsim.checks.race.wording import line_text
from ptxsim.events.records import Place


def let_in(case: Case, place: Place) -> Reason | None:
    """Why the barriers that the signallers of this one wait for do not hold them back."""
    backs = sorted(case.answers(place), key=lambda p: index_of(case, p) != index_of(case, place))
    return next((found for back in backs if (found := _why(case, place, back))), None)


def _why(case: Case, place: Place, back: Place) -> Reason | None:
    other, name = case.histories[back], case.name(back)
    found = _asks_afterwards(case, place, back) or twice_in_a_row(case, back, name) or one_slot(case, back)
    if found is not None or threads_in(other.arriving()) <= other.count:
        return found
    row = min(row for _, _, row in other.arrivals)
    lines = {"init": case.line(other.row), "line": f" ({case.line(row)})"}
    return reason("too-many", name=name, count=other.count, **lines)


def _asks_afterwards(case: Case, place: Place, back: Place) -> Reason | None:
    """A thread that goes round both rings signals an element and only then waits for its answer."""
    record, rings = record_of(case.cluster), (case.ring(place), case.ring(back))
    if record is None or len(rings[0]) != len(rings[1]) or len(rings[0]) < 2:
        return None
    if index_of(case, place) != index_of(case, back):
        return None
    rounds = set.intersection(*(case.histories[p].signallers for p in rings[0]))
    before: dict[int, BarrierStep] = {}  # warp -> its last step, if that signals this barrier
    for step in record.steps:
        last = before.pop(step.warp, None)
        if step.kind == "arrive" and step.places == (place,) and step.warp in rounds:
            before[step.warp] = step
        elif last is not None and step.kind == "wait" and step.places == (back,):
            line = line_text(record.races, step.row)
            return reason("signals-first", step.row, name=case.name(back), line=line)
    return None
