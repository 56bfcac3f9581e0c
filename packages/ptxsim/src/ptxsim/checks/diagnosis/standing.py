"""What threads held at a barrier have done themselves, or would do next, by the record and the program."""

from __future__ import annotations

from ptxsim.checks import phrases
from ptxsim.checks.barrier_history import held_at
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.deadlock.settled_branches import Guards
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.race.barrier_record import record_of
from ptxsim.checks.static_flow import signal_rows
from ptxsim.events.records import Place


def own_twice(case: Case, place: Place) -> Reason | None:
    """The only threads that arrive on a barrier also wait for it, and arrive too often in a row."""
    history, record = case.histories[place], record_of(case.cluster)
    warps = history.signallers
    if record is None or len(warps) != 1 or not warps & (set(history.waits) | held_at(case.cluster, [place])):
        return None
    arrivals, most, rows = 0, 0, set[int]()
    for step in record.steps[: record.taken or None]:
        if step.warp in warps and step.kind == "wait":
            arrivals = 0
        elif step.warp in warps and step.kind in ("arrive", "commit") and place in step.places:
            arrivals += max(1, step.amount) if step.kind == "arrive" else 1
            most = max(most, arrivals)
            rows.add(step.row)
    if most <= history.count:
        return None
    lanes = {warp: signals.lanes for (_, warp, _), signals in history.arrivals.items()}
    who = case.role(lanes)
    facts = {"times": phrases.times(most), "line": case.line(min(rows))}
    return reason("own-twice", min(rows), who=who, count=history.count, **facts)


def ahead_of(case: Case, places: list[Place]) -> dict[int, set[int]]:
    """Warps held at a wait -> rows still ahead of them that signal one of these barriers or its array."""
    cluster, array_of = case.cluster, case.reporter.shared_array
    arrays = {array_of(offset) for _, offset in places}
    rows = {row for row, at in signal_rows(cluster.launch).items() if arrays & {array_of(o) for o in at}}
    found: dict[int, set[int]] = {}
    guards = Guards(cluster)
    for number in cluster.waits if rows else ():
        split, warp = cluster.splits[number], number // 32
        ahead = rows & guards.reach(split.row, warp, split.full_mask)
        if ahead:
            found.setdefault(warp, set()).update(ahead)
    return found
