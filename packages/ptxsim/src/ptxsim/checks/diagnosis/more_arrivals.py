"""Races that follow from a barrier that got more arrivals than it counts: a phase was over too early."""

from __future__ import annotations

from ptxsim.checks.barrier_history import history_of, threads_in
from ptxsim.checks.diagnosis.both_ways import both_ways
from ptxsim.checks.diagnosis.carriers import carriers, own_signals
from ptxsim.checks.diagnosis.case import case_of
from ptxsim.checks.diagnosis.excess_arrivals import room_for_all
from ptxsim.checks.diagnosis.in_a_row import twice_in_a_row
from ptxsim.checks.diagnosis.misnamed import missent
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.running_ahead import why
from ptxsim.checks.phrases import spot
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.wording import barrier_of, line_text
from ptxsim.events.records import Place

_SHOWN = ("several-lines", "own-twice", "each-for-all", "ahead-issuers", "ahead-commits")


def one_too_many(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A barrier counts fewer arrivals than it got: its phase completed without the first access's arrival."""
    warp = pair.second.warp(races)
    for place in carriers(races, pair.first):
        if (warp, place) not in pair.seen:
            continue
        turns = both_ways(case_of(races), place)
        if turns is not None:
            return turns
        more = _more_than_counted(races, place)
        if more is not None:
            return more
    return None


def let_in_by_excess(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """An access is early: its thread has waited for a barrier that is signalled more often than is due."""
    for place in _awaited_before(races, pair):
        more = _more_than_counted(races, place)
        if more is not None:
            return more
        found = twice_in_a_row(case_of(races), place) or why(case_of(races), place)
        if found.cause.id in _SHOWN:
            name = barrier_of(races, place)
            return Reason(found.cause, f"{name}, which was waited for, is complete too early: {found.text}")
    return None


def _by_line(races: RaceDetector, history) -> int:
    """How many threads arrive on a barrier, a thread counted once for each line at which it arrives."""
    lanes: dict = {}
    for (_, warp, row), signals in history.arrivals.items():
        key = warp, spot(races.launch.program, row)
        lanes[key] = lanes.get(key, 0) | signals.lanes
    return threads_in(lanes)


def too_many(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """What let one of the accesses come too early counts fewer arrivals than come in each round. Threads that
    arrive by turns come in fewer rounds than it has phases.
    """
    histories, barriers = history_of(races.cluster), races.cluster.mbarriers
    places = [p for p in _awaited_before(races, pair) if p in histories and p in barriers]
    often = [all(2 * s.each > barriers[p].phase for s in histories[p].arrivals.values()) for p in places]
    found = (_more_than_counted(races, p) for p, each in zip(places, often, strict=True) if each)
    more = next((more for more in found if more is not None), None)
    return None if more is None else missent(case_of(races)) or more


def _awaited_before(races: RaceDetector, pair: AccessPair) -> list[Place]:
    """What the threads of loads have waited for last, and what each side signals that the other waits for."""
    loads = (op for op in pair.issued if op is not None and op.kind == "load")
    last = [races.record.last_wait(races.clocks.warp_of(op.thread), op.at) for op in loads]
    found, histories = [place for place in last if place is not None], history_of(races.cluster)
    for one, other in (pair.first, pair.second), (pair.second, pair.first):
        signals = sorted(own_signals(races, one) & histories.keys())
        found += [place for place in signals if other.warp(races) in histories[place].waits]
    return found


def _more_than_counted(races: RaceDetector, place: Place) -> Reason | None:
    """More threads arrive on this barrier than it counts."""
    history, stray = history_of(races.cluster).get(place), races.clocks.signals[place].stray
    if history is None or stray is None:
        return None
    if room_for_all(races.cluster, place) and _by_line(races, history) <= history.count:
        return None
    lines = {"init": case_of(races).line(history.row), "line": line_text(races, stray)}
    return reason("too-many", name=barrier_of(races, place), count=history.count, **lines)
