"""One mbarrier used in both directions: two sides signal it, each to end a phase, and both wait for it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ptxsim.checks.barrier_history import held_at, history_of, threads_in
from ptxsim.checks.diagnosis.number_agreement import role
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.standing import ahead_of
from ptxsim.checks.phrases import source_line, spot
from ptxsim.events.records import Place
from ptxsim.events.views import Cluster
from ptxsim.machine.register_files import WHOLE_WARP


@dataclass
class Signallers:
    """The threads that signal a barrier at one line."""

    row: int
    how: str
    lanes: dict[int, int] = field(default_factory=dict)  # warp -> mask


def both_ways(cluster: Cluster, place: Place, reporter) -> Reason | None:
    """Two sides, one line each, signal this barrier, each with as many threads as it counts arrivals, and
    each waits for it. The other side may still be held at its first wait: then the program's text shows that
    it can reach such a line.
    """
    history = history_of(cluster).get(place)
    if history is None:
        return None
    sides = _sides(cluster, history)
    if any(threads_in(side.lanes) != history.count for side in sides):
        return None
    waiters = set(history.waits) | held_at(cluster, [place])
    if len(sides) == 1 and (other := _to_come(cluster, place, sides[0], reporter)) is not None:
        sides.append(other)
    if len(sides) != 2 or not all(waiters & set(side.lanes) for side in sides):
        return None
    if set(sides[0].lanes) & set(sides[1].lanes) or {side.how for side in sides} != {"arrive", "commit"}:
        return None  # two lines of arrivals may belong to one phase
    who = [role(cluster, side.lanes) for side in sides]
    lines = [source_line(cluster.program, side.row) for side in sides]
    facts = {"one": who[0], "other": who[1], "line": lines[0], "there": lines[1], "count": history.count}
    return reason("both-ways", sides[1].row, name=reporter.shared_name(place[1]), **facts)


def _to_come(cluster: Cluster, place: Place, side: Signallers, reporter) -> Signallers | None:
    """The side held at this barrier that will, after that wait, signal it or another element of its array."""
    ahead = ahead_of(cluster, [place], reporter.shared_array)
    mine = {warp: rows for warp, rows in ahead.items() if warp in held_at(cluster, [place]) - set(side.lanes)}
    rows = {row for rows in mine.values() for row in rows}
    if not rows:
        return None
    arrives = cluster.program.instrs[min(rows)].op == "mbarrier"
    return Signallers(min(rows), "arrive" if arrives else "commit", dict.fromkeys(mine, WHOLE_WARP))


def _sides(cluster: Cluster, history) -> list[Signallers]:
    lines: dict[Hashable, Signallers] = {}
    for (how, warp, row), signals in history.arrivals.items():
        side = lines.setdefault(spot(cluster.program, row), Signallers(row, how))
        side.lanes[warp] = side.lanes.get(warp, 0) | signals.lanes
    return list(lines.values())
