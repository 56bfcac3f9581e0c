"""Barriers that got only some of the arrivals that they count, or whose arrivals all went elsewhere."""

from __future__ import annotations

from collections import Counter

from ptxsim.checks.barrier_history import ring_of, signals_by, threads_in
from ptxsim.checks.diagnosis.deadlock import roles
from ptxsim.checks.diagnosis.deadlock.cause import awaited, barrier_of, stuck
from ptxsim.checks.diagnosis.deadlock.uses import commit_for_threads, strange_commit
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.number_agreement import agree, of_first_cta
from ptxsim.checks.diagnosis.reason import Reason
from ptxsim.checks.phrases import line_of, lines_text
from ptxsim.checks.static_flow import signal_ranks
from ptxsim.events.records import Place


def partial(model: Model, waiter: Waiter) -> Reason | None:
    """Some arrivals came, and every thread that could arrive has done so."""
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None or not 0 < barrier.pending < barrier.expected:
        return None
    alone = commit_for_threads(model, waiter) or _skips_element(model, waiter, history)
    if alone is not None:
        return alone
    arrived = {w for (_, w, _), s in history.arrivals.items() if s.phase == barrier.phase}
    rows = rows_of_others(model, waiter)
    others = [w for w in model.waiters if w is not waiter and not arrived & set(w.lanes)]
    late = [w for w in others if model.able(w, rows, waiter.place)]
    if any(_signallers(model, waiter.place) & set(w.lanes) for w in late):
        return None
    if rows & model.reach(waiter) and not arrived & set(waiter.lanes):
        return roles.role_later(model, waiter, rows)
    twice = strange_commit(model, waiter) or _own_behind(model, waiter, history, rows)
    twice = twice or roles.role_twice(model, waiter, arrived)
    if twice is not None:
        return twice
    if _may_come(model, waiter, rows, late):
        return None
    elsewhere = _elsewhere(model, waiter, barrier.pending)
    facts = awaited(model, waiter) | {"arrived": arrived_text(model, waiter, history)}
    if elsewhere:
        return stuck("partial-apart", waiter, elsewhere=elsewhere, **facts)
    return stuck("partial", waiter, **facts)


def _own_behind(model: Model, waiter: Waiter, history, rows: set[int]) -> Reason | None:
    """The missing arrival is the waiter's own, at a line after its wait where nobody has signalled yet."""
    barrier = model.cluster.mbarriers.last(waiter.place)
    lines = {model.spot(row) for _, _, row in history.sources}
    own = [row for row in sorted(rows & model.reach(waiter)) if model.spot(row) not in lines]
    lanes = threads_in(waiter.lanes)
    came = {w: s.lanes for (_, w, _), s in history.sources.items() if s.phase == barrier.phase}
    all_came = all(mask & ~came.get(warp, 0) == 0 for warp, mask in waiter.lanes.items())
    if not own or barrier.pending not in (1, lanes) or (all_came and lanes > barrier.pending):
        return None
    return stuck("own-behind", waiter, who=waiter.who, line=model.line(own[0]), **awaited(model, waiter))


def _skips_element(model: Model, waiter: Waiter, history) -> Reason | None:
    """A warp has signalled every other element of this ring but never this one, at a line where other warps
    go round the whole ring.
    """
    ring = ring_of(model.histories, waiter.place, model.array)
    by: dict[int, dict[Place, tuple[int, int]]] = {}  # warp -> element -> (row of a signal, lanes)
    for place in ring:
        for (_, warp, row), signals in model.histories[place].arrivals.items():
            by.setdefault(warp, {})[place] = row, signals.lanes
    round_all = {model.line(row) for own in by.values() if len(own) == len(ring) for row, _ in own.values()}
    for warp, own in by.items():
        row, lanes = min(own.values())
        if waiter.place in own or len(own) < len(ring) - 1 or model.line(row) not in round_all:
            continue
        if not _has_passed(model, warp, [*own], waiter.place):
            continue
        who = model.role({warp: lanes})
        facts = awaited(model, waiter) | {"arrived": arrived_text(model, waiter, history)}
        facts |= {"array": model.array(waiter.place[1]), "line": model.line(row)}
        return stuck("skips-element", waiter, who=who, has=agree(who, "has"), **facts)
    return None


def _has_passed(model: Model, warp: int, signalled: list[Place], place: Place) -> bool:
    """Whether a warp that signals a ring's elements in turn has skipped this one."""
    rounds = max(signals.each for _, signals in signals_by(model.histories, signalled, warp))
    return max(signalled) > place or rounds > 1


def _may_come(model: Model, waiter: Waiter, rows: set[int], late: list[Waiter]) -> bool:
    """Whether one of these groups may still signal this barrier at a line where it has signalled no other."""
    for other in late:
        elsewhere = {
            row
            for place, history in model.histories.items()
            for _, warp, row in history.sources
            if place != waiter.place and warp in other.lanes
        }
        if model.able(other, rows, waiter.place) - elsewhere:
            return True
    return False


def _signallers(model: Model, place: Place) -> set[int]:
    """Warps that may still come: they have signalled this barrier, or any element of its array if some warp
    goes round that.
    """
    ring = ring_of(model.histories, place, model.array)
    by = {p: model.histories[p].signallers for p in ring}
    often = Counter(w for warps in by.values() for w in warps)
    return {*often} if max(often.values(), default=0) > 1 else by[place]


def arrived_text(model: Model, waiter: Waiter, history) -> str:
    """Who has arrived in the current phase, and where: `WG0 warp 0, line 1020`."""
    phase = model.cluster.mbarriers.last(waiter.place).phase
    lanes: dict = {}
    lines: set = set()
    for (_, warp, row), signals in history.arrivals.items():
        if signals.phase == phase:
            lanes[warp] = lanes.get(warp, 0) | signals.lanes
            lines.add(line_of(model.program, row))
    mine = of_first_cta(model.cluster, lanes)
    more = "" if len(mine) == len(lanes) else " and others"
    return f"{model.role(mine)}{more}, {lines_text(sorted(lines)[:3])}"


def _elsewhere(model: Model, waiter: Waiter, room: int | None = None) -> str:
    """The barriers that the lines meant for this one signal instead. A warp that signals both counts as here.

    room: the arrivals that it lacks. If more threads of other CTAs arrive on their own barrier, they are not
    meant.
    """
    rank, offset = waiter.place
    rows = model.rows_for(waiter.place) & _rows_at(model, model.array(offset))
    found, own = [], model.histories[waiter.place].signallers
    for place, history in model.histories.items():
        if place == waiter.place or not any(row in rows for _, _, row in history.sources):
            continue
        if (
            place[1] == offset
            and place[0] != rank
            and (room is None or _threads(history, rows) <= room)
            and not all(warp in own or model.at_home(row) for _, warp, row in history.arrivals)
            or model.array(place[1]) != model.array(offset)
            or place[0] == rank
            and model.cluster.mbarriers.last(place).phase - 2 > history.seen
        ):
            found.append(place)
    return ", ".join(model.name(p) for p in found)


def _rows_at(model: Model, array: str) -> set[int]:
    """Rows that have signalled elements of this array. Judged by the program's text alone, a row may be taken
    for another: an index that starts at -1 counts from the array before its own.
    """
    mine = (history for place, history in model.histories.items() if model.array(place[1]) == array)
    return {row for history in mine for _, _, row in history.sources}


def _threads(history, rows: set[int]) -> int:
    """How many threads signal a barrier at these rows, not counting loads."""
    return sum(s.lanes.bit_count() for (_, _, row), s in history.arrivals.items() if row in rows)


def misrouted(model: Model, waiter: Waiter) -> Reason | None:
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None or history.arrivals:
        return None
    elsewhere = _elsewhere(model, waiter)
    if not elsewhere:
        return None
    return stuck("misrouted", waiter, name=model.name(waiter.place), elsewhere=elsewhere)


def rows_of_others(model: Model, waiter: Waiter) -> set[int]:
    """Rows that signal this group's barrier, except loads and those that the program has for another CTA."""
    rows = model.rows_for(waiter.place) if waiter.kind == "mbarrier" else set()
    ranks = signal_ranks(model.cluster.launch) if model.cluster.ctas > 1 else {}
    rows = {r for r in rows if ranks.get(r, waiter.place[0]) == waiter.place[0]}
    return {r for r in rows if model.program.instrs[r].op != "cp"}
