"""Rival repairs, tried on the record: advice is given for the one that would mend it, and for no other.

`shifted`: whether signals and waits of a ring of barriers would match if one side's indices moved by d.
`other_buffer`: waiting for the other barrier of the ring would mend this access. If it would break an access
that is in order now, the barrier's index is right, and the buffer's index is wrong.
`one_slot`: signals that stay at one element although the signaller's own waits go round a ring.
`loads_and_commits`: a barrier whose phases may end with loads as well as with MMAs.
`loaded_apart`: whether a load issued together with this one signals the barrier that was waited for.
"""

from __future__ import annotations

import itertools
import re

from ptxsim.checks.barrier_history import held_waits, history_of, orders_of, times_signalled
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.phrases import spot
from ptxsim.checks.race.async_work import Issued
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.events.records import Place
from ptxsim.machine.register_files import WHOLE_WARP

_COMPARED = 4  # elements in a row, of either side
_VERBS = {"arrive": "arrives on", "commit": "commits to", "load": "loads to"}


def shifted(case: Case, place: Place) -> Reason | None:
    """Every waiter of the ring that `place` belongs to is the same number of elements off its signallers."""
    ring = {p: index_of(case, p) for p in case.ring(place)}
    if len(ring) < 2:
        return None
    signals, waits = (_walks(order, ring) for order in orders_of(case.cluster))
    found = {
        _distance(one, other, len(ring)): (signaller, one[0], waiter, other[0])
        for signaller, one in signals.items()
        for waiter, other in waits.items()
    }
    if len(found) != 1:
        return None
    ((distance, (signaller, first, waiter, awaited)),) = found.items()
    if not distance or _left_one_out(case, signaller, ring):
        return None  # no distance, or an element left out
    at = {index: p for p, index in ring.items()}
    row = min(row for _, warp, row in case.histories[at[first]].sources if warp == signaller)
    return reason(
        "shifted",
        row,
        signaller=case.role({signaller: WHOLE_WARP}),
        signalled=case.name(at[first]),
        line=case.line(row),
        waiter=case.role({waiter: WHOLE_WARP}),
        awaited=case.name(at[awaited]),
        where=_waits_at(case, at[awaited], waiter),
        distance=min(distance, len(ring) - distance),
    )


def _left_one_out(case: Case, warp: int, ring: dict) -> bool:
    """Whether a warp is held at a wait and has passed more of its waits than it has signalled elements."""
    if not any(held == warp for held, _, _ in held_waits(case.cluster)):
        return False
    return times_signalled(case.histories, ring, warp) < sum(_goes_round(case, warp, len(ring)).values())


def one_slot(case: Case, place: Place) -> Reason | None:
    """The threads that signal the ring of `place` always name one element of it, while their own waits go
    round a ring.
    """
    ring = case.ring(place)
    if _one_for_each(case, ring):
        return None
    used: dict[tuple, dict] = {}  # how, at which line -> element -> warp -> (row, lanes, signals)
    for p in ring:
        for (how, warp, row), signals in case.histories[p].sources.items():
            line = spot(case.program, row)
            warps = used.setdefault((how, line), {}).setdefault(p, {})
            _, lanes, total = warps.get(warp, (row, 0, 0))
            warps[warp] = row, lanes | signals.lanes, total + signals.total
    for (how, _), places in used.items():
        ((only, warps),) = places.items() if len(places) == 1 < len(ring) else ((place, {}),)
        for warp, (row, lanes, total) in warps.items():
            awaited, rounds = _goes_round(case, warp, len(ring)), total // lanes.bit_count()
            if rounds > 1 and len(awaited) > 1 and rounds + 1 >= sum(awaited.values()):
                names = ", ".join(case.name(p) for p in sorted(awaited)[:3])
                who = case.role({warp: lanes})
                told = {"who": who, "verb": _VERBS[how], "name": case.name(only)}
                return reason("one-slot", row, names=names, line=case.line(row), times=rounds, **told)
    return None


def _one_for_each(case: Case, ring: list[Place]) -> bool:
    """Whether several roles wait for elements of this array, each for its own, so that none goes round it."""
    waits = {(warp, p) for p in ring for warp in case.histories[p].waits}
    waits |= {(warp, place) for warp, _, place in held_waits(case.cluster) if place in ring}
    return len({p for _, p in waits}) > 1 and len({warp for warp, _ in waits}) == len(waits)


def loads_and_commits(case: Case, place: Place) -> Reason | None:
    """A barrier that gets bytes of loads and commits of MMAs, so that either may end its phases."""
    history = case.histories.get(place)  # None if nothing was recorded about it
    sources = history.sources if history is not None else ()
    rows = {how: {row for h, _, row in sources if h == how} for how in ("load", "commit")}
    if not rows["load"] or not rows["commit"]:
        return None
    lines = {how: ", ".join(sorted({case.line(row) for row in found})) for how, found in rows.items()}
    name = case.name(place)
    return reason("two-uses", min(rows["commit"]), name=name, loads=lines["load"], commits=lines["commit"])


def _goes_round(case: Case, warp: int, depth: int) -> dict[Place, int]:
    """Element -> how often a warp has waited for it, in the ring of this depth that it uses most."""
    arrays: dict = {}
    for p in case.histories:
        arrays.setdefault((p[0], case.array(p)), []).append(p)
    rings = [ring for ring in arrays.values() if len(ring) == depth]
    passed = {p: history.waits[warp].count for p, history in case.histories.items() if warp in history.waits}
    waits = [{p: passed[p] for p in ring if p in passed} for ring in rings]
    return max(waits, key=len, default={})


def _walks(order: dict[int, list], ring: dict) -> dict[int, list[int]]:
    """Warp -> the elements of the ring that it came to in order, repeats removed; at least two."""
    found = {}
    for warp, places in order.items():
        walk = [ring[p] for p in places if p in ring]
        walk = [index for at, index in enumerate(walk) if not at or walk[at - 1] != index]
        if len(walk) > 1:
            found[warp] = walk
    return found


def _distance(one: list[int], other: list[int], depth: int) -> int | None:
    """How far apart the two walks are throughout; None if the distance changes."""
    pairs = list(zip(one, other, strict=False))[:_COMPARED]
    apart = {(b - a) % depth for a, b in pairs}
    return apart.pop() if len(apart) == 1 else None


def index_of(case: Case, place: Place) -> int:
    """A barrier's index in its array; 0 for a single barrier."""
    number = re.search(r"\[(\d+)\]", case.name(place))
    return int(number[1]) if number else 0


def _waits_at(case: Case, place: Place, warp: int) -> str:
    waits = case.histories[place].waits.get(warp)
    return f" ({case.line(min(waits.rows))})" if waits is not None else ""


def other_buffer(
    races: RaceDetector, pair: AccessPair, signalled: tuple[int, int], awaited: tuple[int, int]
) -> str:
    """Buffers that the same copies fill and whose reads are in order as they are; "" if there are none."""
    histories = history_of(races.cluster)
    copies = [c for p in (signalled, awaited) for c in histories[p].parts + histories[p].before]
    name_of = races.reporter.shared_name
    filled = {name_of(copy.offset).partition(" + ")[0] for copy in copies}
    pairs = [p for p in races.history.pairs.values() if "bytes" in (p.first.kind, p.second.kind)]
    in_order = filled - {p.buffer for p in pairs}
    return " and ".join(sorted(in_order)) if pair.buffer in filled else ""


def filled_before(races: RaceDetector, pair: AccessPair, awaited: tuple[int, int]) -> bool:
    """Whether loads that signal `awaited` fill the same place as the load that is the first access."""
    load, history = pair.issued[0], history_of(races.cluster).get(awaited)
    copies = history.parts + history.before if history is not None else []
    if load is None or load.kind != "load" or load.copy is None:
        return False
    return any(copy.offset == load.copy.offset for copy in copies)


def loaded_apart(races: RaceDetector, load: Issued | None, awaited: tuple[int, int]) -> int | None:
    """The row of another load, issued together with this one, that signals `awaited`; None if all of these
    loads signal one barrier: then no load names a wrong one.
    """
    if load is None or load.kind != "load" or not 0 <= load.at < len(races.clocks.steps):
        return None
    warp, steps = races.clocks.warp_of(load.thread), races.clocks.steps
    before = (s for s in reversed(steps[: load.at]) if s.warp == warp)
    behind = (s for s in steps[load.at :] if s.warp == warp)
    beside = [s for way in (before, behind) for s in itertools.takewhile(lambda s: s.kind == "load", way)]
    rows = (s.row for s in beside if s.places == (awaited,) != steps[load.at].places)
    return next(rows, None)


def loaded_in_order(races: RaceDetector, pair: AccessPair, op: Issued) -> str:
    """Buffers that a load's thread has filled after the same wait without any conflict; "" if none."""
    waits = races.record.last_wait
    warp, name_of = races.clocks.warp_of(op.thread), races.reporter.shared_name
    filled = {
        name_of(load.copy.offset).partition(" + ")[0]
        for load in races.transfers.known()
        if load.kind == "load" and load.thread == op.thread and load.copy is not None
        if waits(warp, load.at) == waits(warp, op.at) and abs(load.at - op.at) < 4
    }
    wrong = {p.buffer for p in races.history.pairs.values() if "bytes" in (p.first.kind, p.second.kind)}
    return " and ".join(sorted(filled - wrong))
