"""Copies that go to the wrong place: to the wrong CTA of the cluster, or to one stage in every round."""

from __future__ import annotations

from ptxsim.checks.barrier_history import history_of
from ptxsim.checks.diagnosis.case import case_of
from ptxsim.checks.diagnosis.deadlock.nameless import array_names
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.phrases import load_unit
from ptxsim.checks.race.async_work import Issued
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.wording import barrier_of, line_of, line_text


def wrong_peer(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A thread sends to one CTA, but what it has waited for before is signalled by threads of another one."""
    for op in pair.issued:
        if op is None or op.kind != "load" or op.copy is None or not _sends(races, op):
            continue
        per_cta, warp = races.cluster.warps_per_cta, races.clocks.warp_of(op.thread)
        awaited = races.record.last_wait(warp, op.at) if op.at >= 0 else None
        history = history_of(races.cluster).get(awaited) if awaited is not None else None
        if history is None or awaited is None:
            continue
        theirs = {by // per_cta for by in history.arriving(("arrive",))}
        here = set(op.copy.ranks)
        if len(theirs) == len(here) == 1 and theirs != here:
            facts = {"cta": here.pop(), "other": theirs.pop(), "name": barrier_of(races, awaited)}
            what = load_unit(races.launch.program.instrs[op.row])
            return reason("wrong-peer", op.row, warp, what=what, line=line_text(races, op.row), **facts)
    return None


def _sends(races: RaceDetector, op: Issued) -> bool:
    """Whether it copies registers, or shared memory of its own CTA, to shared memory of the cluster."""
    return load_unit(races.launch.program.instrs[op.row]) != "TMA load"


def place_stays(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """Copies of one line report to different elements of an array, but write the same place."""
    one, other = pair.issued
    if one is None or other is None or not one.kind == other.kind == "load":
        return None
    if one.copy is None or other.copy is None:
        return None
    warps = {races.clocks.warp_of(op.thread) for op in (one, other)}
    if len(warps) > 1 or not _sends(races, one) and one.copy.targets != other.copy.targets:
        return None  # lanes that send do so one by one
    places, array_of = (one.copy.barriers[:1], other.copy.barriers[:1]), array_names(case_of(races))
    alike = len({(rank, array_of(offset)) for ((rank, offset),) in places}) == 1 if all(places) else False
    if not alike or places[0] == places[1] or line_of(races, one.row) != line_of(races, other.row):
        return None
    same = {str(op.copy.targets) for op in races.transfers.known() if op.copy and op.row == other.row}
    if len(same) > 1 and not _sends(races, one):
        return None  # elsewhere it goes with the stage
    names = " and ".join(barrier_of(races, place) for (place,) in places)
    return reason("place-stays", buffer=pair.buffer, names=names, line=line_text(races, other.row))
