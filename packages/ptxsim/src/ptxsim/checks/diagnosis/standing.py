"""What threads held at a barrier have done themselves, or would do next, by the record and the program."""

from __future__ import annotations

from ptxsim.checks import phrases
from ptxsim.checks.barrier_history import held_at, history_of
from ptxsim.checks.diagnosis.deadlock.settled_branches import Guards
from ptxsim.checks.diagnosis.number_agreement import role
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.race.barrier_record import record_of
from ptxsim.checks.static_flow import signal_rows
from ptxsim.events.records import Place
from ptxsim.events.views import Cluster


def own_twice(cluster: Cluster, place: Place, reporter) -> Reason | None:
    """The only threads that arrive on a barrier also wait for it, and arrive too often in a row."""
    history, record = history_of(cluster)[place], record_of(cluster)
    warps = history.signallers
    if record is None or len(warps) != 1 or not warps & (set(history.waits) | held_at(cluster, [place])):
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
    who = role(cluster, lanes)
    facts = {"times": phrases.times(most), "line": phrases.source_line(cluster.program, min(rows))}
    return reason("own-twice", min(rows), who=who, count=history.count, **facts)


def ahead_of(cluster: Cluster, places: list[Place], array_of) -> dict[int, set[int]]:
    """Warps held at a wait -> rows still ahead of them that signal one of these barriers or its array."""
    arrays = {array_of(offset) for _, offset in places}
    rows = {row for row, at in signal_rows(cluster.launch).items() if arrays & {array_of(o) for o in at}}
    found: dict[int, set[int]] = {}
    if not rows or not cluster.waits:
        return found
    guards = Guards(cluster)
    for number in cluster.waits:
        split, warp = cluster.splits[number], number // 32
        ahead = rows & guards.reach(split.row, warp, split.full_mask)
        if ahead:
            found.setdefault(warp, set()).update(ahead)
    return found
