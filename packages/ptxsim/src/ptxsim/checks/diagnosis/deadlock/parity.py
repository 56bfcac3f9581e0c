"""Causes in the phase of a wait: not flipped, flipped too early, or started with the wrong parity."""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks import phrases
from ptxsim.checks.barrier_history import BarrierHistory, ring_of, signals_by, threads_in, times_signalled
from ptxsim.checks.diagnosis.deadlock.cause import barrier_of, find_cycle, itself, of_waiter, says, stuck
from ptxsim.checks.diagnosis.deadlock.over_without import went_on
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.number_agreement import agree
from ptxsim.checks.diagnosis.reason import Reason
from ptxsim.checks.phrases import line_of, lines_text
from ptxsim.events.records import Place
from ptxsim.machine.split import first_lane, lane_list

_FIRST = (" or began at 1", ", or phase 0 was signalled too early")  # for a wait alone; for a ring of several


def not_flipped(model: Model, waiter: Waiter) -> Reason | None:
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None:
        return None
    warp, mask = next(iter(waiter.lanes.items()))
    thread = warp * 32 + first_lane(mask)
    seen, asked = history.last_seen(thread), waiter.detail["parity"]
    if seen < 0 or seen & 1 != asked or barrier.phase <= seen + 1:
        return None
    return (
        _stays(model, waiter)
        or _one_awaited(model, waiter, history)
        or stuck(
            "not-flipped",
            waiter,
            asks=says(waiter, "asks"),
            name=model.name(waiter.place),
            parity=asked,
            seen=agree(waiter.who, "it has"),
            phase=seen,
            next=seen + 1,
            now=barrier.phase,
        )
    )


def _stays(model: Model, waiter: Waiter) -> Reason | None:
    """All threads that signal this array or wait for it use only this one element."""
    ring = ring_of(model.histories, waiter.place, model.array)
    others = [p for p in ring if p != waiter.place]
    used = any(model.histories[p].sources or model.histories[p].waits for p in others)
    if not others or used or any(w.place in others for w in model.waiters):
        return None
    names = " or ".join(model.name(p) for p in sorted(others)[:3])
    times = model.histories[waiter.place].waits[next(iter(waiter.lanes))].count + 1
    return stuck("stays", waiter, who=waiter.who, name=model.name(waiter.place), times=times, others=names)


def _one_awaited(model: Model, waiter: Waiter, history: BarrierHistory) -> Reason | None:
    """This group has waited for this element alone and waits for it again; the others are signalled."""
    missed, awaited = model.case.awaited(waiter.place)
    if not missed or len(awaited) > 1:
        return None
    names = f"{' and '.join(map(model.name, missed[:3]))} {'is' if len(missed) == 1 else 'are'}"
    line, cause = f" ({model.line(waiter.row)})", CAUSES["ahead-slots"]
    told = cause.tell(names=names, others=model.name(waiter.place), line=line)
    return of_waiter(cause, f"{says(waiter, 'waits')} for {waiter.wants}: {told}", waiter)


def flipped_early(model: Model, waiter: Waiter) -> Reason | None:
    """A group in a ring of waits (perhaps of one) waits for the open phase and never saw the one before."""
    barrier, history = barrier_of(model, waiter)
    if (
        barrier is None
        or history is None
        or not barrier.phase
        or waiter.detail["parity"] != barrier.phase & 1
    ):
        return None
    seen, missed = max(history.last_seen(t) for t in _threads(waiter)), barrier.phase - 1
    ring = find_cycle(model, waiter)
    if seen >= missed or not ring or _is_faulty(model, waiter):
        return None
    if (seen + 1) & 1 == waiter.detail["parity"] and history.seen > seen:
        turns = _by_turns(model, waiter, history, seen + 1)
        return turns or went_on(model, waiter) or _lapped(model, waiter, history, seen + 1)
    fresh = passed_fresh(model, waiter, waiter.place) if not missed else None
    if (told := fresh or went_on(model, waiter)) is not None:
        return told
    first = "" if missed else _FIRST[len(ring) > 1]
    first += f"; {itself(waiter)}" if len(ring) == 1 else ""
    facts = {"phase": barrier.phase, "name": model.name(waiter.place), "missed": missed, "first": first}
    return stuck("flipped-early", waiter, **facts)


def arrives_twice(model: Model, waiter: Waiter) -> Reason | None:
    """The group has arrived more often than it has waited, and so missed the phase that it waits for."""
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None:
        return None
    asked, phase = waiter.detail["parity"], max(history.last_seen(t) for t in _threads(waiter)) + 1
    warp = next(iter(waiter.lanes))
    times = times_signalled(model.histories, [waiter.place], warp)
    threads = threads_in(history.arriving())
    if phase & 1 != asked or barrier.phase < phase + 2 or times < phase + 2 or threads != history.count:
        return None
    rows = [row for row, _ in signals_by(model.histories, [waiter.place], warp)]
    lines = lines_text(sorted({line_of(model.program, row) for row in rows})[:3])
    facts = {"name": model.name(waiter.place), "phase": phase, "now": barrier.phase, "lines": lines}
    facts |= {"arrived": agree(waiter.who, "it has") + f" arrived {phrases.times(times)}"}
    return stuck("arrives-twice", waiter, count=history.count, passed=phrases.times(phase), **facts)


def _by_turns(model: Model, waiter: Waiter, history, phase: int) -> Reason | None:
    """Other warps of its CTA have waited at the same line, and every warp that waits there also signals."""
    line, per_cta = model.line(waiter.row), model.cluster.warps_per_cta
    others = {
        warp: waits.lanes
        for warp, waits in history.waits.items()
        if warp not in waiter.lanes and {model.line(row) for row in waits.rows} == {line}
    }
    signal = {warp for _, warp, _ in history.sources}
    alike = {*others, *waiter.lanes}
    if not others or not alike <= signal or {warp // per_cta for warp in alike} != {waiter.cta}:
        return None
    who = model.role(others)
    facts = {"name": model.name(waiter.place), "phase": phase, "others": who, "line": line}
    return stuck("role-by-turns", waiter, now=model.cluster.mbarriers.last(waiter.place).phase, **facts)


def _lapped(model: Model, waiter: Waiter, history, phase: int) -> Reason:
    """The group asks for the phase after the one it has seen; others see each phase, and the signaller waits
    only for them.
    """
    now, lanes = model.cluster.mbarriers.last(waiter.place).phase, history.arriving()
    signals = model.role(lanes) if lanes else "its loads"
    facts = {"name": model.name(waiter.place), "phase": phase, "now": now, "signals": signals}
    return stuck("lapped", waiter, who=waiter.who, **facts)


def passed_fresh(model: Model, waiter: Waiter, place: Place) -> Reason | None:
    """The group's first wait for data asked for parity 1, which is not that of phase 0."""
    history = model.histories[place]
    if not history.loaders:
        return None
    if _began_right(model, waiter, place):
        return None
    waits = [history.waits[warp] for warp in waiter.lanes if warp in history.waits]
    fresh = next((w.fresh for w in waits if w.fresh is not None), None)
    if waits and fresh is None:
        return None
    row = waiter.row if fresh is None else fresh
    passes = "asks for phase 1 before phase 0" if fresh is None else "on a fresh barrier passes at once"
    facts = {"name": model.name(place), "line": model.line(row), "passes": passes}
    return stuck("fresh-wait", waiter, who=waiter.who, **facts)


def _began_right(model: Model, waiter: Waiter, place: Place) -> bool:
    """Whether the group has waited for phase 0 of another barrier of the array. Then it flips too often."""
    same = (p for p in model.histories if p != place and model.array(p[1]) == model.array(place[1]))
    waits = (model.histories[p].waits.get(warp) for p in same for warp in waiter.lanes)
    return any(w is not None and w.fresh is None for w in waits)


def _is_faulty(model: Model, waiter: Waiter) -> bool:
    """Whether the barrier itself is at fault (say, initialised twice), so that its phases prove nothing."""
    name, found = model.reporter.shared_name(waiter.place[1]), model.reporter.by_identity.values()
    return any(f.kind == "mbarrier" and f.evidence.get("barrier") == name for f in found)


def _threads(waiter: Waiter) -> list[int]:
    return [warp * 32 + int(lane) for warp, mask in waiter.lanes.items() for lane in lane_list(mask)]
