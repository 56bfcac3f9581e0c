"""Why a barrier completes phases before those who wait for it see them: what its signallers ignored."""

from __future__ import annotations

import functools
from collections import Counter
from operator import or_

from ptxsim.checks import phrases
from ptxsim.checks.barrier_history import (
    BarrierHistory,
    history_of,
    never_waited,
    ring_of,
    signals_by,
    times_signalled,
    times_waited,
    waited_at,
)
from ptxsim.checks.diagnosis.fresh_late import fresh_late
from ptxsim.checks.diagnosis.misnamed import misnamed, missent
from ptxsim.checks.diagnosis.number_agreement import role
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.ring_short import ring_short
from ptxsim.checks.diagnosis.rivals import loads_and_commits, one_slot, shifted
from ptxsim.checks.diagnosis.too_many_arrive import all_at_each, each_for_all
from ptxsim.checks.race.barrier_record import record_of
from ptxsim.checks.race.wording import line_of
from ptxsim.events.records import Place
from ptxsim.events.views import Cluster


def why(cluster: Cluster, histories: dict, place: tuple[int, int], reporter) -> Reason:
    """The first that applies: barriers without a wait, waits that let a phase pass again, many issuers."""
    history = histories[place]
    found = loads_and_commits(cluster, place, reporter) or missent(cluster, histories, reporter)
    found = found or _several_lines(cluster, place, history, reporter) or each_for_all(cluster, history)
    found = found or all_at_each(cluster, histories, place, reporter)
    ignored = never_waited(cluster, histories, reporter)
    if found is None and ignored:
        return misnamed(cluster, histories, reporter) or reason("ahead-unwaited", names=" or ".join(ignored))
    return (
        found
        or shifted(cluster, place, reporter)
        or one_slot(cluster, place, reporter)
        or _slots(cluster, histories, place, reporter)
        or _again(cluster, histories, history, reporter)
        or fresh_late(cluster, histories, place, reporter)
        or _too_often(cluster, histories, history, reporter)
        or _unused_handed_back(cluster, histories, place, reporter)
        or _unsignalled(cluster, histories, place, reporter)
        or _all_at_one(cluster, histories, place, reporter)
        or _issuers(cluster, place, history, reporter)
        or uneven(cluster, histories, place, reporter)
        or ring_short(cluster, histories, place, reporter)
        or _count(history)
    )


def _several_lines(cluster: Cluster, place, history: BarrierHistory, reporter) -> Reason | None:
    """One thread signals it by several lines with no wait in between, and it counts fewer arrivals."""
    record = record_of(cluster)
    warps = {warp for how, warp, _ in history.sources if how != "load"}
    if record is None or len(warps) != 1:
        return None
    rows: dict = {}  # line -> a row, since the last wait
    for step in record.steps:
        if step.warp in warps and step.kind == "wait":
            rows.clear()
        if step.warp in warps and step.kind in ("arrive", "commit") and place in step.places:
            rows[line_of(record.races, step.row)] = step.row
            if len(rows) > history.count:
                who = role(cluster, step.warp // cluster.warps_per_cta, {step.warp: step.lanes})
                lines = " and ".join(phrases.source_line(cluster.program, row) for row in rows.values())
                apart = _other_elements(record, rows)
                if apart:
                    names = " and ".join(reporter.shared_name(p[1]) for p in apart)
                    return reason("elements-meet", step.row, who=who, lines=lines, names=names)
                return reason("several-lines", step.row, who=who, lines=lines, count=history.count)
    return None


def _other_elements(record, rows: dict) -> list:
    """What two lines signal first, if that is not the same element: their indices meet later on."""
    signals = [s for s in record.steps if s.kind in ("arrive", "commit")]
    first = [
        next((s.places[0] for s in signals if line_of(record.races, s.row) == line), None) for line in rows
    ]
    return first[:2] if len(set(first)) > 1 and None not in first else []


def _all_at_one(cluster: Cluster, histories: dict, place: tuple[int, int], reporter) -> Reason | None:
    """Several threads signal this element, and others of its array, which are waited for, nobody."""
    _, awaited = waited_at(histories, cluster, place, reporter)
    silent = [reporter.shared_name(p[1]) for p in awaited if not histories[p].sources]
    threads = sum(mask.bit_count() for mask in arriving(histories[place]).values())
    rows = [row for how, _, row in histories[place].sources if how != "load"]
    if not silent or threads != histories[place].count * (1 + len(silent)) or len({*rows}) != 1:
        return None
    names = f"{' and '.join(silent[:3])} {'is' if len(silent) == 1 else 'are'}"
    line, others = cluster.program.instrs[rows[0]].src, reporter.shared_name(place[1])
    return reason("ahead-silent", rows[0], names=names, line=line, others=others)


def _slots(cluster: Cluster, histories: dict, place: tuple[int, int], reporter) -> Reason | None:
    """Elements of an array that are signalled and that no wait ever names."""
    arrays: dict = {}
    for p in histories:
        if p[0] == place[0]:
            arrays.setdefault(reporter.shared_array(p[1]), p)
    for first in arrays.values():
        missed, awaited = waited_at(histories, cluster, first, reporter)
        waits = sum(
            (Counter({w: of.count for w, of in histories[p].waits.items()}) for p in awaited), Counter()
        )
        if not missed or max(waits.values(), default=0) < len(missed) + len(awaited):  # it may still come
            continue
        names = [reporter.shared_name(p[1]) for p in missed[:3]]
        others = [reporter.shared_name(p[1]) for p in awaited[:3]]
        rows = {row for p in awaited for w in histories[p].waits.values() for row in w.rows}
        row = min(rows, default=None)
        at = f" (line {cluster.program.instrs[row].src})" if row is not None else ""
        signalled = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'}"
        return reason("ahead-slots", row, names=signalled, others=" and ".join(others), line=at)
    return None


def _too_often(cluster: Cluster, histories: dict, history: BarrierHistory, reporter) -> Reason | None:
    """Who waits for this barrier answers its signallers more often than it has waited."""
    signallers = {warp for _, warp, _ in history.sources}
    for place, other in histories.items():
        if other is history or not signallers & set(other.waits):
            continue
        answers: dict[tuple[int, int], tuple[int, int]] = {}
        for (how, warp, row), signals in other.sources.items():
            if how == "arrive" and warp in history.waits and not signals.announces:
                line = cluster.program.instrs[row].src or row
                times, lanes = answers.get((warp, line), (0, 0))
                each = signals.total // max(1, signals.lanes.bit_count())
                answers[warp, line] = times + each, lanes | signals.lanes
        for (warp, line), (times, lanes) in answers.items():
            waits = history.waits[warp].count
            if times > waits + 1:
                who = role(cluster, warp // cluster.warps_per_cta, {warp: lanes})
                name = reporter.shared_name(place[1])
                facts = {"who": who, "times": times, "name": name, "line": line}
                return reason("ahead-arrives", waits=phrases.times(waits), **facts)
    return None


def _unused_handed_back(cluster: Cluster, histories: dict, place: Place, reporter) -> Reason | None:
    """Who waits for this ring hands back more elements than it has waited for; the first round needs none."""
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
                who = role(cluster, warp // cluster.warps_per_cta, {warp: signals.lanes})
                facts = {"who": who, "times": phrases.times(times), "name": reporter.shared_array(back[1])}
                facts["array"] = reporter.shared_array(place[1])
                line = cluster.program.instrs[row].src or row
                lanes = _lanes_that_wait(histories, full, warp)
                if lanes and not lanes & signals.lanes:
                    waiter = role(cluster, warp // cluster.warps_per_cta, {warp: lanes})
                    return reason("lanes-apart", row, line=line, waiter=waiter, **facts)
                return reason("unused-back", row, line=line, waits=phrases.times(passed), **facts)
    return None


def _lanes_that_wait(histories: dict, ring: list[Place], warp: int) -> int:
    """The lanes of a warp that have passed a wait for any of these."""
    return functools.reduce(or_, (mask for p in ring for w, mask in histories[p].passed if w == warp), 0)


def _unsignalled(cluster: Cluster, histories: dict, place: tuple[int, int], reporter) -> Reason | None:
    """Elements of the barrier's own array that are waited for and that nobody signals."""
    _, awaited = waited_at(histories, cluster, place, reporter)
    silent = [reporter.shared_name(p[1]) for p in awaited if not histories[p].sources]
    row = next((row for how, _, row in histories[place].sources if how != "load"), None)
    if not silent or row is None or histories[place].seen < 0:
        return None
    line = cluster.program.instrs[row].src
    array = [p for p in histories if p in awaited and histories[p].sources]
    names = f"{' and '.join(silent[:3])} {'is' if len(silent) == 1 else 'are'}"
    others = " and ".join(reporter.shared_name(p[1]) for p in array[:3])
    return reason("ahead-silent", row, names=names, line=line, others=others)


def _again(cluster: Cluster, histories: dict, history: BarrierHistory, reporter) -> Reason | None:
    """A wait of a warp that signals the barrier let a phase pass a second time."""
    warps = {warp for _, warp, _ in history.sources}
    for place, other in histories.items():
        for warp in warps & set(other.waits):
            if other is not history and other.waits[warp].again is not None:
                phase, row = other.waits[warp].again
                line = cluster.program.instrs[row].src
                at, name = f" (line {line})" if line else "", reporter.shared_name(place[1])
                return reason("again-ahead", row, name=name, line=at, phase=phrases.phase_name(phase))
    return None


def uneven(cluster: Cluster, histories: dict, place: tuple[int, int], reporter) -> Reason | None:
    """A warp has signalled this ring more often than it has waited for the one that answers."""
    array_of, history = reporter.shared_array, histories[place]
    ring = ring_of(histories, place, array_of)
    waiters = {w for p in ring for w in histories[p].waits} | waiting_for(cluster, ring)
    for (how, warp, row), signals in history.sources.items():
        totals = [s for p in ring for (h, w, _), s in histories[p].sources.items() if (h, w) == (how, warp)]
        times = sum(s.each for s in totals)
        for other in (p for p in histories if p not in ring and warp in histories[p].waits):
            answers = ring_of(histories, other, array_of)
            answered = {w for p in answers for _, w, _ in histories[p].sources}
            waits = sum(histories[p].waits[warp].count for p in answers if warp in histories[p].waits)
            if how != "load" and len(answers) == len(ring) and answered & waiters and times > waits:
                who = role(cluster, warp // cluster.warps_per_cta, {warp: signals.lanes})
                names = {"array": array_of(place[1]), "answer": array_of(other[1])}
                line = cluster.program.instrs[row].src
                return reason("uneven", row, who=who, times=times, waits=waits, line=line, **names)
    return None


def waiting_for(cluster: Cluster, places: list) -> set[int]:
    """Warps that stand at a wait for one of these barriers."""
    held = [g for g, w in cluster.waits.items() if w.kind == "mbarrier" and w.detail["place"] in places]
    return {g // 32 for g in held}


def _issuers(cluster: Cluster, place, history: BarrierHistory, reporter) -> Reason | None:
    """More threads signal it by one line than it counts arrivals."""
    by_line: dict[tuple[str, int], dict[int, int]] = {}
    for (how, warp, row), signals in history.sources.items():
        if how != "load":
            key = how, cluster.program.instrs[row].src or row
            lanes = by_line.setdefault(key, {})
            lanes[warp] = lanes.get(warp, 0) | signals.lanes
    for (how, line), lanes in by_line.items():
        threads = sum(mask.bit_count() for mask in lanes.values())
        both = from_several_ctas(cluster, history)
        if threads > history.count and both is not None and how == "arrive":
            return both
        if threads > history.count:
            who = role(cluster, next(iter(lanes)) // cluster.warps_per_cta, lanes)
            facts = {"threads": threads, "who": who, "line": line, "count": history.count}
            meant = how == "commit" and _columns_of_their_own(cluster, set(lanes))
            one = how == "commit" or any(
                s.announces for (_, w, _), s in history.sources.items() if w in lanes
            )
            return reason("ahead-commits" if meant else "ahead-issuers" if one else "ahead-count", **facts)
    return None


def _columns_of_their_own(cluster: Cluster, warps: set[int]) -> bool:
    """Do these warps issue MMAs to other columns each? Then they are all meant to."""
    record, columns = record_of(cluster), dict[tuple[int, int], set[int]]()
    if record is None:
        return False
    for queue in record.races.transfers.of_queue.values():
        for _, op in queue:
            warp = record.races.clocks.warp_of(op.thread)
            if op.columns is not None and warp in warps:
                columns.setdefault(op.columns, set()).add(warp)
    return len(columns) >= len(warps) and all(len(found) == 1 for found in columns.values())


def from_several_ctas(cluster: Cluster, history: BarrierHistory) -> Reason | None:
    """One line by which several CTAs of the cluster arrive on a barrier that counts fewer arrivals."""
    ranks: dict[int, set[int]] = {}
    rows: dict[int, int] = {}
    for how, warp, row in history.sources:
        if how == "arrive":
            line = cluster.program.instrs[row].src or row
            ranks.setdefault(line, set()).add(warp // cluster.warps_per_cta)
            rows.setdefault(line, row)
    for line, ctas in ranks.items():
        if len(ctas) > max(1, history.count):
            who = " and ".join(f"CTA {rank}" for rank in sorted(ctas))
            return reason("one-cta", rows[line], who=who, line=line, count=history.count)
    return None


def announced_apart(cluster: Cluster, place: tuple[int, int], reporter) -> Reason | None:
    """A CTA announces bytes at its own barrier, and all copies report to that of another, where they are
    waited for.
    """
    histories, (mine, offset) = history_of(cluster), place
    row = next((row for (_, _, row), s in histories[place].sources.items() if s.announces), None)
    waited = {p for p, h in histories.items() if h.waits}
    waited |= {w.detail["place"] for w in cluster.waits.values() if w.kind == "mbarrier"}
    loaded = {p for p, h in histories.items() if any(how == "load" for how, _, _ in h.sources)}
    theirs = [p[0] for p in waited & loaded if p[1] == offset and p[0] != mine]
    if row is None or place in waited | loaded or len(theirs) != 1:
        return None
    return reason("announced-apart", row, mine=mine, name=reporter.shared_name(offset), theirs=theirs[0])


def _count(history: BarrierHistory) -> Reason:
    """Too many arrivals for its count; where every signaller arrives once a phase, too few waits."""
    sources = [s for (how, _, _), s in history.sources.items() if how != "load"]
    arrivals, threads = sum(s.total for s in sources), sum(m.bit_count() for m in arriving(history).values())
    waits = max((w.count for w in history.waits.values()), default=0)
    rounds, left = divmod(arrivals, max(threads, 1))
    if threads == history.count and not left and waits < rounds:
        each = "its signaller arrives" if threads == 1 else f"each of its {threads} signallers arrives"
        return reason("ahead-rounds", each=each, rounds=rounds, count=history.count, waits=waits)
    return reason("ahead", arrivals=arrivals, count=history.count)


def announced_too_often(cluster: Cluster, place: tuple[int, int], reporter) -> Reason | None:
    """More arrivals have come in the phase under way than it counts, and all announce bytes."""
    history, phase = history_of(cluster)[place], cluster.mbarriers[place].phase
    sources = [s for (how, _, _), s in history.sources.items() if how != "load" and s.phase == phase]
    if sum(s.now for s in sources) <= history.count or not all(s.announces for s in sources):
        return None
    several = from_several_ctas(cluster, history) or _several_lines(cluster, place, history, reporter)
    return several or again_too_early(cluster, place, reporter)


def again_too_early(cluster: Cluster, place: tuple[int, int], reporter) -> Reason | None:
    """More arrivals in a phase than it counts, though no more threads than that: nobody waited in between.
    Or too many threads announce bytes: that is for one.
    """
    history, apart = history_of(cluster).get(place), announced_apart(cluster, place, reporter)
    if apart is not None:
        return apart
    if history is None:
        return None
    if not room_for_all(cluster, place):
        announced = any(s.announces for s in history.sources.values())
        if not announced or from_several_ctas(cluster, history):  # their bytes tell that
            return None
        return _issuers(cluster, place, history, reporter)
    lanes = arriving(history)
    ignored = never_waited(cluster, history_of(cluster), reporter)
    if ignored:
        named = misnamed(cluster, history_of(cluster), reporter)
        return named or reason("ahead-unwaited", names=" or ".join(ignored))
    who = role(cluster, min(lanes) // cluster.warps_per_cta, lanes)
    found = shifted(cluster, place, reporter) or announced_twice(cluster, place, reporter)
    return found or reason("arrives-again", who=who, count=history.count)


def announced_twice(cluster: Cluster, place: tuple[int, int], reporter) -> Reason | None:
    """A thread that walks round a ring announces bytes twice at one element before it goes on to the next. In
    between it issues some of its loads, but not all: these would be of another round.
    """
    record = record_of(cluster)
    if record is None or len(ring_of(history_of(cluster), place, reporter.shared_array)) < 2:
        return None
    last: dict[int, tuple] = {}  # warp -> its last step at a barrier: line and barriers
    between: dict[int, set] = {}  # warp -> lines of its loads since
    loads = [(s.warp, line_of(record.races, s.row)) for s in record.steps if _loads_to(s, place)]
    for step in record.steps:
        if _loads_to(step, place):
            between.setdefault(step.warp, set()).add(line_of(record.races, step.row))
        if step.kind not in ("wait", "arrive", "commit"):
            continue
        line = phrases.source_line(cluster.program, step.row)
        all_of_them = between.pop(step.warp, set()) == {line for warp, line in loads if warp == step.warp}
        again = step.places == (place,) and last.get(step.warp) == (line, step.places)
        if step.more and again and not all_of_them:
            who = role(cluster, step.warp // cluster.warps_per_cta, {step.warp: step.lanes})
            return reason("announced-twice", step.row, who=who, bytes=step.more, line=line)
        last[step.warp] = line, step.places
    return None


def _loads_to(step, place: tuple[int, int]) -> bool:
    return step.kind == "load" and place in step.places


def room_for_all(cluster: Cluster, place: tuple[int, int]) -> bool:
    """Whether no more threads arrive on a barrier than it counts; False where not all of them are known."""
    history, barrier = history_of(cluster).get(place), cluster.mbarriers.get(place)
    if history is None or not arriving(history):
        return False
    known = sum(s.total for (how, _, _), s in history.sources.items() if how != "load")
    if barrier is not None and known < barrier.phase * history.count + history.count - barrier.pending:
        return False  # others came by cp.async
    return sum(mask.bit_count() for mask in arriving(history).values()) <= history.count


def arriving(history: BarrierHistory) -> dict[int, int]:
    """Warp -> lanes that have arrived, or committed."""
    lanes: dict[int, int] = {}
    for (how, warp, _), signals in history.sources.items():
        if how != "load":
            lanes[warp] = lanes.get(warp, 0) | signals.lanes
    return lanes
