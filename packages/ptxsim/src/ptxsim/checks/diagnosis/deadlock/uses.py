"""Deadlocks where a wait is for another barrier, or another element, than is signalled for it."""

from __future__ import annotations

from ptxsim.checks.barrier_history import ring_of
from ptxsim.checks.diagnosis.deadlock.cause import awaited, barrier_of, of_waiter, stuck
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.misnamed import misnamed, missent
from ptxsim.checks.diagnosis.number_agreement import agree
from ptxsim.checks.diagnosis.reason import Reason
from ptxsim.checks.race.barrier_record import MOST, BarrierStep, record_of
from ptxsim.events.records import Place

_WARP = 32  # threads


def wrong_name(model: Model, waiter: Waiter) -> Reason | None:
    """A wait or a signal names the wrong barrier; reported for any group that waits at an mbarrier."""
    if waiter.kind != "mbarrier":
        return None
    answer = misnamed(model.case) or missent(model.case)
    return of_waiter(answer.cause, answer.text, waiter) if answer is not None else None


def parted(model: Model, waiter: Waiter) -> Reason | None:
    """Waits and signals that go round a ring in different ways."""
    return _moved_first(model, waiter) or _apart(model, waiter)


def _moved_first(model: Model, waiter: Waiter) -> Reason | None:
    """A warp has gone round a ring from its second element on and now asks for the first, a round late."""
    barrier, history = barrier_of(model, waiter)
    if (
        barrier is None
        or history is None
        or barrier.phase
        or waiter.detail["parity"]
        or len(waiter.lanes) != 1
    ):
        return None
    (warp,) = waiter.lanes
    ring = sorted(ring_of(model.histories, waiter.place, model.array))
    passed = [model.histories[p].waits.get(warp) for p in ring]
    fresh = [w for w in passed[1:] if w is not None and w.count == 1 and w.fresh is not None]
    if len(ring) < 2 or waiter.place != ring[0] or passed[0] is not None or len(fresh) < len(ring) - 1:
        return None
    return stuck("moved-first", waiter, first=model.name(ring[1]), name=model.name(ring[0]))


def _apart(model: Model, waiter: Waiter) -> Reason | None:
    """The nth wait on an array is for another element than the nth signal; those before agree."""
    barrier, _ = barrier_of(model, waiter)
    record = record_of(model.cluster)
    if barrier is None or record is None or len(record.steps) >= MOST:
        return None
    if _one_wait_more(model, waiter):
        return None
    steps = record.steps[: record.taken or MOST]
    ring = set(ring_of(model.histories, waiter.place, model.array))
    waits = [place for place, _ in _walk(steps, ring, ("wait",), {min(waiter.lanes)})] + [waiter.place]
    for warp in {s.warp for s in steps if s.kind in _SIGNALS and ring & set(s.places)}:
        signals = _walk(steps, ring, _SIGNALS, {warp})
        if any(_signalled_by_others(model, place, warp) for place in waits):
            continue  # each element has a signaller of its own: that is no ring
        apart = [n for n, (one, (other, _)) in enumerate(zip(waits, signals, strict=False)) if one != other]
        if not apart or not apart[0]:
            continue
        number, (place, step) = apart[0], signals[apart[0]]
        signaller = model.role({warp: step.lanes})
        names = {"awaited": model.name(waits[number]), "signalled": model.name(place)}
        facts = {"number": number + 1, "signaller": signaller, "line": model.line(step.row)}
        return stuck("parted", waiter, **names, **facts)
    return None


def _one_wait_more(model: Model, waiter: Waiter) -> bool:
    """Whether a warp that alone signals its array waits at another line than for all phases so far."""
    warp = min(waiter.lanes)
    ring = [model.histories[p] for p in ring_of(model.histories, waiter.place, model.array)]
    own = set().union(*(history.signallers for history in ring)) == set(waiter.lanes)
    waits = [history.waits[warp] for history in ring if warp in history.waits]
    lines = {model.spot(row) for passed in waits for row in passed.rows}
    return own and bool(lines) and model.spot(waiter.row) not in lines


def _signalled_by_others(model: Model, place: Place, warp: int) -> bool:
    """Whether others signal an element and this warp never does, nor goes round others."""
    by = model.histories[place].signallers
    ring = ring_of(model.histories, place, model.array)
    own = [p for p in ring if warp in model.histories[p].signallers]
    return bool(by) and warp not in by and len(own) < 2


def own_elsewhere(model: Model, waiter: Waiter) -> Reason | None:
    """The group has signalled elements of the array where nobody waits; nobody has signalled its own."""
    _, history = barrier_of(model, waiter)
    if history is None or history.sources:
        return None
    held = {w.place for w in model.waiters if w.kind == "mbarrier"}
    ring = [p for p in ring_of(model.histories, waiter.place, model.array) if p not in held]
    signalled = [
        p
        for p in ring
        if not model.histories[p].waits and any(w in waiter.lanes for _, w, _ in model.histories[p].sources)
    ]
    if not signalled:
        return None
    elsewhere = ", ".join(model.name(p) for p in signalled[:3])
    return stuck("misrouted", waiter, name=model.name(waiter.place), elsewhere=elsewhere)


def strange_commit(model: Model, waiter: Waiter) -> Reason | None:
    """A commit has come to this barrier, but none of the thread arrivals that the program has for it."""
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None or barrier.expected < 2:
        return None
    here = [(how, warp, row) for (how, warp, row), s in history.sources.items() if s.phase == barrier.phase]
    arrive = [r for r in model.rows_for(waiter.place) if model.program.instrs[r].op == "mbarrier"]
    if not arrive or {how for how, _, _ in here} != {"commit"}:
        return None
    _, warp, row = here[0]
    who = model.role({warp: history.sources[here[0]].lanes})
    facts = awaited(model, waiter) | {"line": model.line(min(arrive)), "there": model.line(row)}
    return stuck("strange-commit", waiter, who=who, commits=agree(who, "commits"), **facts)


def commit_for_threads(model: Model, waiter: Waiter) -> Reason | None:
    """Only commits have ever signalled this element, fewer than the whole warps that it counts, and the
    threads that arrive on its array, by the program's text, are those that wait here.
    """
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None or barrier.expected % _WARP or not history.sources:
        return None
    commits = {(warp, row): s.lanes for (how, warp, row), s in history.sources.items() if how == "commit"}
    rows = {row for _, row in commits}
    mine = model.reach(waiter) & model.rows_for(waiter.place) - rows
    others = [p for p in ring_of(model.histories, waiter.place, model.array) if p != waiter.place]
    if len(commits) != len(history.sources) or len(commits) >= barrier.expected or not (mine and others):
        return None
    (warp, row), lanes = next(iter(commits.items()))
    who = model.role({warp: lanes})
    return stuck("commit-for-threads", waiter, who=who, line=model.line(row), **awaited(model, waiter))


_SIGNALS = ("arrive", "commit")


def _walk(
    steps: list[BarrierStep], ring: set[Place], kinds, warps: set[int]
) -> list[tuple[Place, BarrierStep]]:
    """The elements that these warps came to, in order."""
    mine = [s for s in steps if s.kind in kinds and s.warp in warps]
    return [(place, step) for step in mine for place in step.places if place in ring]


def out_of_turn(model: Model, waiter: Waiter) -> Reason | None:
    """A loop of waits starts at another element than the complete one where the last loop stopped."""
    _, history = barrier_of(model, waiter)
    if history is None or len(waiter.lanes) != 1:
        return None
    (warp,) = waiter.lanes
    ring = sorted(ring_of(model.histories, waiter.place, model.array))
    waits = [model.histories[p].waits.get(warp) for p in ring]
    counts = [0 if w is None else w.count for w in waits]
    lines = {model.spot(row) for w in waits if w is not None for row in w.rows}
    in_turn = counts == sorted(counts, reverse=True) and counts[0] - 1 == counts[-1] > 0
    if not in_turn or model.spot(waiter.row) in lines:
        return None
    due = ring[counts.index(counts[-1])]
    phase = counts[-1]  # the first phase of this element that it has not waited for
    if due == waiter.place or model.cluster.mbarriers.last(due).phase <= phase:
        return None
    facts = {"count": sum(counts), "due": model.name(due), "phase": phase}
    return stuck("out-of-turn", waiter, array=model.array(waiter.place[1]), **facts)


def awaited_elsewhere(model: Model, waiter: Waiter) -> Reason | None:
    """The same warps have waited for all phases of this array at other lines, and none of its signallers will
    reach it again: this wait is for something that reports elsewhere.
    """
    phases, rows = _answered(model, waiter)
    lines = {model.line(row) for row in rows}
    if (
        not phases
        or model.spot(waiter.row) in map(model.spot, rows)
        or not all(h.done for h in waiter.helpers)
    ):
        return None
    facts = {"phases": f"{phases} phase{'s' * (phases > 1)}", "at": " and ".join(sorted(lines))}
    return stuck("awaited-elsewhere", waiter, name=model.array(waiter.place[1]), **facts)


def all_answered(model: Model, waiter: Waiter) -> int:
    """Phases of its array of barriers, if it has waited for each of them, at this very row; else 0."""
    phases, rows = _answered(model, waiter)
    return phases if len(waiter.lanes) == 1 and model.spot(waiter.row) in map(model.spot, rows) else 0


def _answered(model: Model, waiter: Waiter) -> tuple[int, set[int]]:
    """(phases of its barrier array, rows where its warps have waited for each of them); 0 phases if not."""
    barrier, _ = barrier_of(model, waiter)
    if barrier is None:
        return 0, set()
    array = model.array(waiter.place[1])
    same = [p for p in model.histories if p[0] == waiter.place[0] and model.array(p[1]) == array]
    waits = {warp: [w for p in same if (w := model.histories[p].waits.get(warp))] for warp in waiter.lanes}
    passed = [w for own in waits.values() for w in own]
    phases = sum(model.cluster.mbarriers[p].phase for p in same if p in model.cluster.mbarriers)
    often = {sum(w.count for w in own) for own in waits.values()}
    if any(w.fresh is not None for w in passed) or often != {phases}:
        return 0, set()
    return phases, {row for waits in passed for row in waits.rows}
