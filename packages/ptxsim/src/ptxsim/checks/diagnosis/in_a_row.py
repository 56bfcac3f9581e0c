"""A thread that signals a barrier twice where once is meant."""

from __future__ import annotations

from ptxsim.checks.barrier_history import threads_in
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.phrases import times
from ptxsim.checks.race.barrier_record import BarrierStep, record_of
from ptxsim.checks.race.wording import line_of
from ptxsim.events.records import Place


def twice_in_a_row(case: Case, place: Place, it: str = "it") -> Reason | None:
    """A thread signals a barrier several times with nothing in between, more often than init leaves room for.
    it: what the message calls the barrier.
    """
    record, history = record_of(case.cluster), case.histories[place]
    each = history.count // max(threads_in(history.arriving()), 1)
    if record is None or not each:
        return None
    runs: dict[int, list[BarrierStep]] = {}  # warp -> its latest steps, if they signal this barrier
    for step in record.steps:
        run = runs.setdefault(step.warp, [])
        if step.kind not in ("arrive", "commit") or place not in step.places:
            run.clear()
            continue
        if any(other.row == step.row for other in run):
            run.clear()  # a loop that lacks a wait
        run.append(step)
        if len(run) > each and len({(s.lanes, line_of(record.races, s.row)) for s in run}) == 1:
            who, lines = case.role({step.warp: step.lanes}), f"{case.line(step.row)}, {times(len(run))},"
            facts = {"it": it, "lines": lines, "its": "", "count": history.count}
            return reason("several-lines", step.row, who=who, **facts)
    return None
