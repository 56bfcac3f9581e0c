"""One mbarrier used in both directions: two sides signal it, each to end a phase, and both wait for it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ptxsim.checks.barrier_history import held_at, threads_in
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.standing import ahead_of
from ptxsim.checks.phrases import brings_bytes, spot
from ptxsim.events.records import Place
from ptxsim.machine.register_files import WHOLE_WARP


@dataclass
class Signallers:
    """The threads that signal a barrier at one line."""

    row: int
    how: str
    lanes: dict[int, int] = field(default_factory=dict)  # warp -> mask


def both_ways(case: Case, place: Place) -> Reason | None:
    """Two sides, one line each, signal this barrier, each with as many threads as it counts arrivals, and
    each waits for it. The other side may still be held at its first wait: then the program's text shows that
    it can reach such a line.
    """
    history = case.histories.get(place)
    if history is None:
        return None
    sides = _sides(case, place)
    if any(threads_in(side.lanes) != history.count for side in sides):
        return None
    waiters = set(history.waits) | held_at(case.cluster, [place])
    if len(sides) == 1 and (other := _to_come(case, place, sides[0])) is not None:
        sides.append(other)
    if len(sides) != 2 or not all(waiters & set(side.lanes) for side in sides):
        return None
    if set(sides[0].lanes) & set(sides[1].lanes) or {side.how for side in sides} != {"arrive", "commit"}:
        return None  # two lines of arrivals may belong to one phase
    who = [case.role(side.lanes) for side in sides]
    lines = [case.line(side.row) for side in sides]
    facts = {"one": who[0], "other": who[1], "line": lines[0], "there": lines[1], "count": history.count}
    return reason("both-ways", sides[1].row, name=case.name(place), **facts)


def _to_come(case: Case, place: Place, side: Signallers) -> Signallers | None:
    """The side held at this barrier that will, after that wait, signal it or another element of its array."""
    held = held_at(case.cluster, [place]) - set(side.lanes)
    mine = {warp: rows for warp, rows in ahead_of(case, [place]).items() if warp in held}
    rows = {row for of in mine.values() for row in of if not brings_bytes(case.program.instrs[row])}
    if not rows:
        return None
    arrives = case.program.instrs[min(rows)].op == "mbarrier"
    return Signallers(min(rows), "arrive" if arrives else "commit", dict.fromkeys(mine, WHOLE_WARP))


def _sides(case: Case, place: Place) -> list[Signallers]:
    lines: dict[Hashable, Signallers] = {}
    for (how, warp, row), signals in case.histories[place].arrivals.items():
        side = lines.setdefault(spot(case.program, row), Signallers(row, how))
        side.lanes[warp] = side.lanes.get(warp, 0) | signals.lanes
    return list(lines.values())
