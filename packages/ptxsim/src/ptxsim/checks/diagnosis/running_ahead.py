"""Why a barrier completes phases before its waiters see them: what its signallers ignored."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection
from operator import or_

from ptxsim.checks import phrases
from ptxsim.checks.barrier_history import (
    BarrierHistory,
    held_at,
    signals_by,
    threads_in,
    times_signalled,
    times_waited,
)
from ptxsim.checks.diagnosis.both_ways import both_ways
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.excess_arrivals import issuers, several_lines
from ptxsim.checks.diagnosis.fresh_late import fresh_late
from ptxsim.checks.diagnosis.in_a_row import twice_in_a_row
from ptxsim.checks.diagnosis.misnamed import missent, unwaited
from ptxsim.checks.diagnosis.number_agreement import agree
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.ring_short import ring_short
from ptxsim.checks.diagnosis.ring_walk import leaves_ring, stays
from ptxsim.checks.diagnosis.rivals import loads_and_commits, one_slot, shifted
from ptxsim.checks.diagnosis.standing import ahead_of, own_twice
from ptxsim.checks.diagnosis.too_many_arrive import all_at_each, each_for_all
from ptxsim.events.records import Place


def why(case: Case, place: Place) -> Reason:
    """The first explanation that applies."""
    found = (detect(case, place) for detect in _DETECTORS)
    return next(reason for reason in found if reason is not None)


def _own_lines(case: Case, place: Place) -> Reason | None:
    """The thread that waits for this barrier signals it at several lines between its waits for it."""
    waiters = set(case.histories[place].waits) | held_at(case.cluster, [place])
    if not case.histories[place].signallers & waiters:
        return None
    return several_lines(case, place, own=True)


def _lets_in_twice(case: Case, place: Place) -> Reason | None:
    """This barrier, or one that its signallers wait for, is signalled twice in a row."""
    found = (twice_in_a_row(case, p, case.name(p)) for p in case.answers(place))
    return twice_in_a_row(case, place) or next((one for one in found if one is not None), None)


def _fresh_data(case: Case, place: Place) -> Reason | None:
    """A wait for data, at an element of this ring, passed at once on the fresh barrier."""
    for p in case.ring(place):
        history = case.histories[p]
        fresh = [(w, of.fresh) for w, of in history.waits.items() if of.fresh is not None]
        for warp, row in fresh if history.loaders else ():
            if warp not in history.signallers | history.loaders:
                return reason("fresh", row, warp, name=case.name(p), line=f" ({case.line(row)})")
    return None


def _all_at_one(case: Case, place: Place) -> Reason | None:
    """Several threads signal this element; nobody signals others of its array that are waited for."""
    _, awaited = case.awaited(place)
    silent = [case.name(p) for p in awaited if not case.histories[p].sources]
    threads = threads_in(case.histories[place].arriving())
    rows = [row for _, _, row in case.histories[place].arrivals]
    if not silent or threads != case.histories[place].count * (1 + len(silent)) or len({*rows}) != 1:
        return None
    names = f"{' and '.join(silent[:3])} {'is' if len(silent) == 1 else 'are'}"
    line, others = case.line(rows[0]), case.name(place)
    return reason("ahead-silent", rows[0], names=names, line=line, others=others)


def _slots(case: Case, place: Place) -> Reason | None:
    """Elements of an array that are signalled but that no wait ever names."""
    arrays: dict = {}
    for p in case.histories:
        if p[0] == place[0]:
            arrays.setdefault(case.array(p), p)
    for first in arrays.values():
        missed, awaited = case.awaited(first)
        waits = sum(
            (Counter({w: of.count for w, of in case.histories[p].waits.items()}) for p in awaited), Counter()
        )
        if not missed or max(waits.values(), default=0) < len(missed) + len(awaited):  # a wait may still come
            continue
        names = [case.name(p) for p in missed[:3]]
        others = [case.name(p) for p in awaited[:3]]
        rows = {row for p in awaited for w in case.histories[p].waits.values() for row in w.rows}
        row = min(rows, default=None)
        at = f" ({case.line(row)})" if row is not None else ""
        signalled = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'}"
        return reason("ahead-slots", row, names=signalled, others=" and ".join(others), line=at)
    return None


def _too_often(case: Case, place: Place) -> Reason | None:
    """The threads that wait for this barrier answer its signallers more often than they have waited."""
    history = case.histories[place]
    signallers = {warp for _, warp, _ in history.sources}
    for back, other in case.histories.items():
        if other is history or not signallers & set(other.waits):
            continue
        answers: dict[tuple[int, str], tuple[int, int]] = {}
        for (how, warp, row), signals in other.sources.items():
            if how == "arrive" and warp in history.waits and not signals.announces:
                line = case.line(row)
                times, lanes = answers.get((warp, line), (0, 0))
                each = signals.total // max(1, signals.lanes.bit_count())
                answers[warp, line] = times + each, lanes | signals.lanes
        for (warp, line), (times, lanes) in answers.items():
            waits = history.waits[warp].count
            if times > waits + 1:
                who = case.role({warp: lanes})
                facts = {"who": who, "times": times, "name": case.name(back), "line": line}
                return reason("ahead-arrives", waits=phrases.times(waits), **facts)
    return None


def _unused_handed_back(case: Case, place: Place) -> Reason | None:
    """The threads that wait for this ring hand back more elements than they have waited for; the first round
    needs no waits.
    """
    full = case.ring(place)
    signallers = {warp for _, warp, _ in case.histories[place].sources}
    for back, other in case.histories.items():
        free = case.ring(back)
        starts_free = any(
            waits.fresh is not None for warp, waits in other.waits.items() if warp in signallers
        )
        if not starts_free or len(free) != len(full) or set(free) & set(full):
            continue
        for warp in {w for p in full for w in case.histories[p].waits}:
            passed, times = (
                times_waited(case.histories, full, warp),
                times_signalled(case.histories, free, warp),
            )
            if times > passed:
                row, signals = signals_by(case.histories, free, warp)[0]
                who = case.role({warp: signals.lanes})
                facts = {"who": who, "times": phrases.times(times), "name": case.array(back)}
                facts["array"] = case.array(place)
                line = case.line(row)
                lanes = _lanes_that_wait(case.histories, full, warp)
                if lanes and not lanes & signals.lanes:
                    waiter = case.role({warp: lanes})
                    return reason("lanes-apart", row, line=line, waiter=waiter, **facts)
                return reason("unused-back", row, line=line, waits=phrases.times(passed), **facts)
        found = _by_a_third(case, full, free)
        if found is not None:
            return found
    return None


def _by_a_third(case: Case, full: list[Place], free: list[Place]) -> Reason | None:
    """A warp that hands elements back waits for another barrier than this ring, and has handed back more
    elements than anyone has waited for.
    """
    offsets = {offset for _, offset in full}
    everywhere = [p for p in case.histories if p[1] in offsets]  # in the other CTAs of the cluster, too
    if any(case.histories[p].loaders for p in free):
        return None  # it reports that data have arrived
    waiters = {w for p in everywhere for w in case.histories[p].waits} | held_at(case.cluster, everywhere)
    fillers = {w for p in full for _, w, _ in case.histories[p].sources}
    passed = sum(waits.count for p in everywhere for waits in case.histories[p].waits.values())
    for warp in sorted({w for p in free for _, w, _ in case.histories[p].sources} - waiters - fillers):
        row, signals = signals_by(case.histories, free, warp)[0]
        times = times_signalled(case.histories, free, warp)
        if times <= passed:
            continue
        lanes = {w: s.lanes for p in free for (_, w, at), s in case.histories[p].sources.items() if at == row}
        cta = warp // case.cluster.warps_per_cta
        who = case.role({w: m for w, m in lanes.items() if w // case.cluster.warps_per_cta == cta})
        facts = {"name": case.array(free[0]), "array": case.array(full[0])}
        facts |= {"signals": agree(who, "signals"), "times": phrases.times(times)}
        line = case.line(row)
        return reason("unused-third", row, who=who, line=line, waits=phrases.times(passed), **facts)
    return None


def _lanes_that_wait(histories: dict, ring: list[Place], warp: int) -> int:
    """The lanes of a warp that have passed a wait for any of these barriers."""
    return functools.reduce(or_, (mask for p in ring for w, mask in histories[p].passed if w == warp), 0)


def _unsignalled(case: Case, place: Place) -> Reason | None:
    """Elements of the barrier's own array that are waited for but that nobody signals."""
    _, awaited = case.awaited(place)
    silent = [case.name(p) for p in awaited if not case.histories[p].sources]
    row = next((row for _, _, row in case.histories[place].arrivals), None)
    if not silent or row is None or case.histories[place].seen < 0:
        return None
    line = case.line(row)
    array = [p for p in case.histories if p in awaited and case.histories[p].sources]
    names = f"{' and '.join(silent[:3])} {'is' if len(silent) == 1 else 'are'}"
    others = " and ".join(case.name(p) for p in array[:3])
    return reason("ahead-silent", row, names=names, line=line, others=others)


def passed_again(case: Case, place: Place, own: Collection[int] = ()) -> Reason | None:
    """A warp that signals this barrier has passed a wait for another one twice in the same phase; or one of
    these has passed a wait for this one so.
    """
    warps = {warp for _, warp, _ in case.histories[place].sources}
    for back, other in case.histories.items():
        for warp in (warps if back != place else set(own)) & set(other.waits):
            again = other.waits[warp].again
            if again is not None:
                phase, row = again
                at, name = f" ({case.line(row)})", case.name(back)
                which = "again" if back == place else "again-ahead"
                return reason(which, row, name=name, line=at, phase=phrases.phase_name(phase))
    return None


def uneven(case: Case, place: Place) -> Reason | None:
    """A warp has signalled this ring more often than it has waited for the ring that answers."""
    history, ring = case.histories[place], case.ring(place)
    waiters = {w for p in ring for w in case.histories[p].waits} | held_at(case.cluster, ring)
    for (how, warp, row), signals in history.sources.items():
        sources = (source for p in ring for source in case.histories[p].sources.items())
        times = sum(s.each for source, s in sources if source[:2] == (how, warp))
        for other in (p for p in case.histories if p not in ring and warp in case.histories[p].waits):
            answers = case.ring(other)
            waits = times_waited(case.histories, answers, warp)
            if how == "load" or len(answers) != len(ring) or times <= waits:
                continue
            answered = {w for p in answers for _, w, _ in case.histories[p].sources}
            if answered & waiters or set(ahead_of(case, answers)) & waiters:
                who = case.role({warp: signals.lanes})
                names = {"array": case.array(place), "answer": case.array(other)}
                line = case.line(row)
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


_DETECTORS: tuple[Callable[[Case, Place], Reason | None], ...] = (  # the first that answers gives the reason
    loads_and_commits,
    both_ways,
    lambda case, place: missent(case),
    several_lines,
    each_for_all,
    all_at_each,
    own_twice,
    lambda case, place: unwaited(case),
    _lets_in_twice,
    _fresh_data,
    shifted,
    one_slot,
    _slots,
    stays,
    passed_again,
    fresh_late,
    _too_often,
    _unused_handed_back,
    _unsignalled,
    _all_at_one,
    issuers,
    uneven,
    ring_short,
    leaves_ring,
    _own_lines,
    lambda case, place: _count(case.histories[place]),
)
