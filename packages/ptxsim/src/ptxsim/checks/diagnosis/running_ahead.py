"""Why a barrier completes phases before its waiters see them: what its signallers ignored."""

from __future__ import annotations

import functools
from collections import Counter
from operator import or_

from ptxsim.checks import phrases
from ptxsim.checks.barrier_history import (
    BarrierHistory,
    held_at,
    never_waited,
    ring_of,
    signals_by,
    threads_in,
    times_signalled,
    times_waited,
    waited_at,
)
from ptxsim.checks.diagnosis.both_ways import both_ways
from ptxsim.checks.diagnosis.deadlock.nameless import array_names
from ptxsim.checks.diagnosis.excess_arrivals import issuers, several_lines
from ptxsim.checks.diagnosis.fresh_late import fresh_late
from ptxsim.checks.diagnosis.misnamed import misnamed, missent
from ptxsim.checks.diagnosis.number_agreement import agree, role
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.ring_short import ring_short
from ptxsim.checks.diagnosis.ring_walk import leaves_ring, stays
from ptxsim.checks.diagnosis.rivals import loads_and_commits, one_slot, shifted
from ptxsim.checks.diagnosis.standing import ahead_of, own_twice
from ptxsim.checks.diagnosis.too_many_arrive import all_at_each, each_for_all
from ptxsim.events.records import Place
from ptxsim.events.views import Cluster


def why(cluster: Cluster, histories: dict, place: tuple[int, int], reporter) -> Reason:
    """The first explanation that applies: unused barriers, phases passed twice, too many arrivals."""
    history = histories[place]
    found = loads_and_commits(cluster, place, reporter) or both_ways(cluster, place, reporter)
    found = found or missent(cluster, histories, reporter)
    found = found or several_lines(cluster, place, history, reporter) or each_for_all(cluster, history)
    found = found or all_at_each(cluster, histories, place, reporter) or own_twice(cluster, place, reporter)
    ignored = never_waited(cluster, histories, reporter, array_names(cluster, histories, reporter))
    if found is None and ignored:
        return misnamed(cluster, histories, reporter) or reason("ahead-unwaited", names=" or ".join(ignored))
    return (
        found
        or shifted(cluster, place, reporter)
        or one_slot(cluster, place, reporter)
        or _slots(cluster, histories, place, reporter)
        or stays(cluster, histories, place, reporter)
        or _again(cluster, histories, history, reporter)
        or fresh_late(cluster, histories, place, reporter)
        or _too_often(cluster, histories, history, reporter)
        or _unused_handed_back(cluster, histories, place, reporter)
        or _unsignalled(cluster, histories, place, reporter)
        or _all_at_one(cluster, histories, place, reporter)
        or issuers(cluster, place, history, reporter)
        or uneven(cluster, histories, place, reporter)
        or ring_short(cluster, histories, place, reporter)
        or leaves_ring(cluster, histories, place, reporter)
        or _own_lines(cluster, histories, place, reporter)
        or _count(history)
    )


def _own_lines(cluster: Cluster, histories: dict, place: tuple[int, int], reporter) -> Reason | None:
    """The thread that waits for this barrier signals it at several lines between its waits for it."""
    waiters = set(histories[place].waits) | held_at(cluster, [place])
    if not histories[place].signallers & waiters:
        return None
    return several_lines(cluster, place, histories[place], reporter, own=True)


def _all_at_one(cluster: Cluster, histories: dict, place: tuple[int, int], reporter) -> Reason | None:
    """Several threads signal this element; nobody signals others of its array that are waited for."""
    _, awaited = waited_at(histories, cluster, place, reporter)
    silent = [reporter.shared_name(p[1]) for p in awaited if not histories[p].sources]
    threads = threads_in(histories[place].arriving())
    rows = [row for _, _, row in histories[place].arrivals]
    if not silent or threads != histories[place].count * (1 + len(silent)) or len({*rows}) != 1:
        return None
    names = f"{' and '.join(silent[:3])} {'is' if len(silent) == 1 else 'are'}"
    line, others = phrases.source_line(cluster.program, rows[0]), reporter.shared_name(place[1])
    return reason("ahead-silent", rows[0], names=names, line=line, others=others)


def _slots(cluster: Cluster, histories: dict, place: tuple[int, int], reporter) -> Reason | None:
    """Elements of an array that are signalled but that no wait ever names."""
    arrays: dict = {}
    for p in histories:
        if p[0] == place[0]:
            arrays.setdefault(reporter.shared_array(p[1]), p)
    for first in arrays.values():
        missed, awaited = waited_at(histories, cluster, first, reporter)
        waits = sum(
            (Counter({w: of.count for w, of in histories[p].waits.items()}) for p in awaited), Counter()
        )
        if not missed or max(waits.values(), default=0) < len(missed) + len(awaited):  # a wait may still come
            continue
        names = [reporter.shared_name(p[1]) for p in missed[:3]]
        others = [reporter.shared_name(p[1]) for p in awaited[:3]]
        rows = {row for p in awaited for w in histories[p].waits.values() for row in w.rows}
        row = min(rows, default=None)
        at = f" ({phrases.source_line(cluster.program, row)})" if row is not None else ""
        signalled = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'}"
        return reason("ahead-slots", row, names=signalled, others=" and ".join(others), line=at)
    return None


def _too_often(cluster: Cluster, histories: dict, history: BarrierHistory, reporter) -> Reason | None:
    """The threads that wait for this barrier answer its signallers more often than they have waited."""
    signallers = {warp for _, warp, _ in history.sources}
    for place, other in histories.items():
        if other is history or not signallers & set(other.waits):
            continue
        answers: dict[tuple[int, str], tuple[int, int]] = {}
        for (how, warp, row), signals in other.sources.items():
            if how == "arrive" and warp in history.waits and not signals.announces:
                line = phrases.source_line(cluster.program, row)
                times, lanes = answers.get((warp, line), (0, 0))
                each = signals.total // max(1, signals.lanes.bit_count())
                answers[warp, line] = times + each, lanes | signals.lanes
        for (warp, line), (times, lanes) in answers.items():
            waits = history.waits[warp].count
            if times > waits + 1:
                who = role(cluster, {warp: lanes})
                name = reporter.shared_name(place[1])
                facts = {"who": who, "times": times, "name": name, "line": line}
                return reason("ahead-arrives", waits=phrases.times(waits), **facts)
    return None


def _unused_handed_back(cluster: Cluster, histories: dict, place: Place, reporter) -> Reason | None:
    """The threads that wait for this ring hand back more elements than they have waited for; the first round
    needs no waits.
    """
    full = ring_of(histories, place, reporter.shared_array)
    signallers = {warp for _, warp, _ in histories[place].sources}
    for back, other in histories.items():
        free = ring_of(histories, back, reporter.shared_array)
        starts_free = any(
            waits.fresh is not None for warp, waits in other.waits.items() if warp in signallers
        )
        if not starts_free or len(free) != len(full) or set(free) & set(full):
            continue
        for warp in {w for p in full for w in histories[p].waits}:
            passed, times = times_waited(histories, full, warp), times_signalled(histories, free, warp)
            if times > passed:
                row, signals = signals_by(histories, free, warp)[0]
                who = role(cluster, {warp: signals.lanes})
                facts = {"who": who, "times": phrases.times(times), "name": reporter.shared_array(back[1])}
                facts["array"] = reporter.shared_array(place[1])
                line = phrases.source_line(cluster.program, row)
                lanes = _lanes_that_wait(histories, full, warp)
                if lanes and not lanes & signals.lanes:
                    waiter = role(cluster, {warp: lanes})
                    return reason("lanes-apart", row, line=line, waiter=waiter, **facts)
                return reason("unused-back", row, line=line, waits=phrases.times(passed), **facts)
        found = _by_a_third(cluster, histories, full, free, reporter)
        if found is not None:
            return found
    return None


def _by_a_third(cluster: Cluster, histories: dict, full: list, free: list, reporter) -> Reason | None:
    """A warp that hands elements back waits for another barrier than this ring, and has handed back more
    elements than anyone has waited for.
    """
    offsets = {offset for _, offset in full}
    everywhere = [p for p in histories if p[1] in offsets]  # in the other CTAs of the cluster, too
    if any(histories[p].loaders for p in free):
        return None  # it reports that data have arrived
    waiters = {w for p in everywhere for w in histories[p].waits} | held_at(cluster, everywhere)
    fillers = {w for p in full for _, w, _ in histories[p].sources}
    passed = sum(waits.count for p in everywhere for waits in histories[p].waits.values())
    for warp in sorted({w for p in free for _, w, _ in histories[p].sources} - waiters - fillers):
        row, signals = signals_by(histories, free, warp)[0]
        times = times_signalled(histories, free, warp)
        if times <= passed:
            continue
        lanes = {w: s.lanes for p in free for (_, w, at), s in histories[p].sources.items() if at == row}
        cta = warp // cluster.warps_per_cta
        who = role(cluster, {w: m for w, m in lanes.items() if w // cluster.warps_per_cta == cta})
        facts = {"name": reporter.shared_array(free[0][1]), "array": reporter.shared_array(full[0][1])}
        facts |= {"signals": agree(who, "signals"), "times": phrases.times(times)}
        line = phrases.source_line(cluster.program, row)
        return reason("unused-third", row, who=who, line=line, waits=phrases.times(passed), **facts)
    return None


def _lanes_that_wait(histories: dict, ring: list[Place], warp: int) -> int:
    """The lanes of a warp that have passed a wait for any of these barriers."""
    return functools.reduce(or_, (mask for p in ring for w, mask in histories[p].passed if w == warp), 0)


def _unsignalled(cluster: Cluster, histories: dict, place: tuple[int, int], reporter) -> Reason | None:
    """Elements of the barrier's own array that are waited for but that nobody signals."""
    _, awaited = waited_at(histories, cluster, place, reporter)
    silent = [reporter.shared_name(p[1]) for p in awaited if not histories[p].sources]
    row = next((row for _, _, row in histories[place].arrivals), None)
    if not silent or row is None or histories[place].seen < 0:
        return None
    line = phrases.source_line(cluster.program, row)
    array = [p for p in histories if p in awaited and histories[p].sources]
    names = f"{' and '.join(silent[:3])} {'is' if len(silent) == 1 else 'are'}"
    others = " and ".join(reporter.shared_name(p[1]) for p in array[:3])
    return reason("ahead-silent", row, names=names, line=line, others=others)


def _again(cluster: Cluster, histories: dict, history: BarrierHistory, reporter) -> Reason | None:
    """A warp that signals this barrier has passed a wait for another one twice in the same phase."""
    warps = {warp for _, warp, _ in history.sources}
    for place, other in histories.items():
        for warp in warps & set(other.waits):
            if other is not history and other.waits[warp].again is not None:
                phase, row = other.waits[warp].again
                at, name = f" ({phrases.source_line(cluster.program, row)})", reporter.shared_name(place[1])
                return reason("again-ahead", row, name=name, line=at, phase=phrases.phase_name(phase))
    return None


def uneven(cluster: Cluster, histories: dict, place: tuple[int, int], reporter) -> Reason | None:
    """A warp has signalled this ring more often than it has waited for the ring that answers."""
    array_of, history = reporter.shared_array, histories[place]
    ring = ring_of(histories, place, array_of)
    waiters = {w for p in ring for w in histories[p].waits} | held_at(cluster, ring)
    for (how, warp, row), signals in history.sources.items():
        totals = [s for p in ring for (h, w, _), s in histories[p].sources.items() if (h, w) == (how, warp)]
        times = sum(s.each for s in totals)
        for other in (p for p in histories if p not in ring and warp in histories[p].waits):
            answers = ring_of(histories, other, array_of)
            waits = times_waited(histories, answers, warp)
            if how == "load" or len(answers) != len(ring) or times <= waits:
                continue
            answered = {w for p in answers for _, w, _ in histories[p].sources}
            if answered & waiters or set(ahead_of(cluster, answers, array_of)) & waiters:
                who = role(cluster, {warp: signals.lanes})
                names = {"array": array_of(place[1]), "answer": array_of(other[1])}
                line = phrases.source_line(cluster.program, row)
                numbers = {"times": phrases.times(times), "waits": phrases.times(waits)}
                return reason("uneven", row, who=who, line=line, **names, **numbers)
    return None


def _count(history: BarrierHistory) -> Reason:
    """More arrivals than the barrier counts; if every signaller arrives once a phase, too few waits."""
    arrivals = sum(signals.total for signals in history.arrivals.values())
    threads = threads_in(history.arriving())
    waits = max((w.count for w in history.waits.values()), default=0)
    rounds, left = divmod(arrivals, max(threads, 1))
    if threads == history.count and not left and waits < rounds:
        each = "its signaller arrives" if threads == 1 else f"each of its {threads} signallers arrives"
        return reason("ahead-rounds", each=each, rounds=rounds, count=history.count, waits=waits)
    return reason("ahead", arrivals=arrivals, count=history.count)
