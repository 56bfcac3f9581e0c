"""More arrivals than a barrier counts: from several lines, threads or CTAs, or a second time in one phase."""

from __future__ import annotations

from ptxsim.checks.barrier_history import held_waits, history_of, threads_in
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.in_a_row import twice_in_a_row
from ptxsim.checks.diagnosis.let_in import let_in
from ptxsim.checks.diagnosis.misnamed import unwaited
from ptxsim.checks.diagnosis.number_agreement import agree
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.rivals import shifted
from ptxsim.checks.race.barrier_record import record_of
from ptxsim.checks.race.wording import line_of
from ptxsim.events.records import Place
from ptxsim.events.views import Cluster


def several_lines(case: Case, place: Place, own: bool = False) -> Reason | None:
    """One thread signals the barrier at several lines with no wait in between, more often than it counts
    arrivals.

    own: the signalling thread also waits for this barrier; its waits for other barriers do not count.
    """
    record, history = record_of(case.cluster), case.histories[place]
    warps = history.signallers
    if record is None or len(warps) != 1:
        return None
    rows: dict = {}  # line -> a row, since the last wait
    for step in record.steps:
        if step.warp in warps and step.kind == "wait" and (not own or place in step.places):
            rows.clear()
        if step.warp in warps and step.kind in ("arrive", "commit") and place in step.places:
            rows[line_of(record.races, step.row)] = step.row
            if len(rows) > history.count:
                who = case.role({step.warp: step.lanes})
                lines = " and ".join(case.line(row) for row in rows.values())
                apart = _other_elements(record, rows)
                if apart:
                    names = " and ".join(case.name(p) for p in apart)
                    return reason("elements-meet", step.row, who=who, lines=lines, names=names)
                its = " for it" if own else ""
                facts = {"it": "it", "lines": lines, "its": its, "count": history.count}
                return reason("several-lines", step.row, who=who, **facts)
    return None


def _other_elements(record, rows: dict) -> list:
    """The elements that two lines signal first, if these differ: their indices coincide only later."""
    signals = [s for s in record.steps if s.kind in ("arrive", "commit")]
    first = [
        next((s.places[0] for s in signals if line_of(record.races, s.row) == line), None) for line in rows
    ]
    return first[:2] if len(set(first)) > 1 and None not in first else []


def issuers(case: Case, place: Place) -> Reason | None:
    """At one line, more threads signal the barrier than it counts arrivals."""
    history = case.histories[place]
    by_line: dict[tuple[str, str], dict[int, int]] = {}
    for (how, warp, row), signals in history.arrivals.items():
        lanes = by_line.setdefault((how, case.line(row)), {})
        lanes[warp] = lanes.get(warp, 0) | signals.lanes
    for (how, line), lanes in by_line.items():
        threads, both = threads_in(lanes), from_several_ctas(case, place)
        if threads > history.count and both is not None and how == "arrive":
            return both
        if threads > history.count:
            who = case.role(lanes)
            facts = {"threads": threads, "who": who, "line": line, "count": history.count}
            meant = how == "commit" and _columns_of_their_own(case.cluster, set(lanes))
            one = how == "commit" or any(
                s.announces for (_, w, _), s in history.sources.items() if w in lanes
            )
            return reason("ahead-commits" if meant else "ahead-issuers" if one else "ahead-count", **facts)
    return None


def _columns_of_their_own(cluster: Cluster, warps: set[int]) -> bool:
    """Whether each of these warps issues MMAs to columns of its own. Then all of them are meant to issue."""
    record, columns = record_of(cluster), dict[tuple[int, int], set[int]]()
    if record is None:
        return False
    for op in record.races.transfers.known():
        warp = record.races.clocks.warp_of(op.thread)
        if op.columns is not None and warp in warps:
            columns.setdefault(op.columns, set()).add(warp)
    return len(columns) >= len(warps) and all(len(found) == 1 for found in columns.values())


def from_several_ctas(case: Case, place: Place) -> Reason | None:
    """A line at which several CTAs of the cluster arrive on a barrier that counts fewer arrivals."""
    history = case.histories[place]
    ranks: dict[str, set[int]] = {}
    rows: dict[str, int] = {}
    for how, warp, row in history.sources:
        if how == "arrive":
            line = case.line(row)
            ranks.setdefault(line, set()).add(warp // case.cluster.warps_per_cta)
            rows.setdefault(line, row)
    for line, ctas in ranks.items():
        if len(ctas) > max(1, history.count):
            who = " and ".join(f"CTA {rank}" for rank in sorted(ctas))
            return reason("one-cta", rows[line], who=who, line=line, count=history.count)
    return None


def announced_apart(case: Case, place: Place) -> Reason | None:
    """A CTA announces bytes at its own barrier, but all copies signal the barrier of another CTA, where
    threads wait for them.
    """
    histories, (mine, offset) = case.histories, place
    row = next((row for (_, _, row), s in histories[place].sources.items() if s.announces), None)
    waited = {p for p, h in histories.items() if h.waits} | {p for _, _, p in held_waits(case.cluster)}
    loaded = {p for p, h in histories.items() if h.loaders}
    theirs = [p[0] for p in waited & loaded if p[1] == offset and p[0] != mine]
    if row is None or place in waited | loaded or len(theirs) != 1:
        return None
    return reason("announced-apart", row, mine=mine, name=case.name(place), theirs=theirs[0])


def announced_too_often(case: Case, place: Place) -> Reason | None:
    """In the current phase more arrivals have come than the barrier counts, and all announce bytes."""
    history, phase = case.histories[place], case.cluster.mbarriers.last(place).phase
    sources = [signals for signals in history.arrivals.values() if signals.phase == phase]
    if sum(s.now for s in sources) <= history.count or not all(s.announces for s in sources):
        return None
    return from_several_ctas(case, place) or several_lines(case, place) or again_too_early(case, place)


def again_too_early(case: Case, place: Place) -> Reason | None:
    """More arrivals in a phase than the barrier counts, from no more threads than that: nobody waited in
    between. Or several threads announce bytes where one should.
    """
    history, apart = case.histories.get(place), announced_apart(case, place)
    if apart is not None:
        return apart
    if history is None:
        return None
    if not room_for_all(case.cluster, place):
        announced = any(s.announces for s in history.sources.values())
        if not announced or from_several_ctas(case, place):  # another finding, of their bytes, says so
            return None
        return issuers(case, place)
    ignored = unwaited(case)
    if ignored is not None:
        return ignored
    lanes = history.arriving()
    fresh = [w.fresh for warp, w in history.waits.items() if w.fresh is not None and warp not in lanes]
    if fresh and any(s.announces for s in history.sources.values()):  # so the answer came too early
        line = f" ({case.line(fresh[0])})"
        return reason("fresh", fresh[0], name=case.name(place), line=line)
    found = shifted(case, place) or announced_twice(case, place) or twice_in_a_row(case, place)
    found = found or let_in(case, place)
    who = case.role(lanes)
    return found or reason("arrives-again", who=who, arrives=agree(who, "arrives"), count=history.count)


def announced_twice(case: Case, place: Place) -> Reason | None:
    """A thread that walks round a ring announces bytes twice at one element before it moves on. In between it
    issues some of its loads, but not all; after all of them, the second announcement would belong to the next
    round.
    """
    record = record_of(case.cluster)
    if record is None or len(case.ring(place)) < 2:
        return None
    last: dict[int, tuple] = {}  # warp -> its last step at a barrier: line and places
    between: dict[int, set] = {}  # warp -> lines of its loads since
    loads = [(s.warp, line_of(record.races, s.row)) for s in record.steps if _loads_to(s, place)]
    for step in record.steps:
        if _loads_to(step, place):
            between.setdefault(step.warp, set()).add(line_of(record.races, step.row))
        if step.kind not in ("wait", "arrive", "commit"):
            continue
        line = case.line(step.row)
        all_of_them = between.pop(step.warp, set()) == {line for warp, line in loads if warp == step.warp}
        again = step.places == (place,) and last.get(step.warp) == (line, step.places)
        if step.more and again and not all_of_them:
            who = case.role({step.warp: step.lanes})
            return reason("announced-twice", step.row, who=who, bytes=step.more, line=line)
        last[step.warp] = line, step.places
    return None


def _loads_to(step, place: tuple[int, int]) -> bool:
    return step.kind == "load" and place in step.places


def room_for_all(cluster: Cluster, place: tuple[int, int]) -> bool:
    """Whether no more threads arrive on a barrier than it counts; False if the record is incomplete."""
    history = history_of(cluster).get(place)
    return history is not None and 0 < threads_in(history.arriving()) <= history.count
