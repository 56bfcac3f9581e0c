"""A wait for another element of a barrier array than the one that passes an access on."""

from __future__ import annotations

from ptxsim.checks.barrier_history import history_of
from ptxsim.checks.diagnosis.carriers import carriers, own_signals
from ptxsim.checks.diagnosis.case import case_of
from ptxsim.checks.diagnosis.out_of_step import newest_wait, others_columns
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.rivals import filled_before, loaded_apart, loaded_in_order, other_buffer
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.wording import barrier_of, line_text, work_of


def other_slot(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """The warp waited for another element of the array than the one that passes the access on."""
    forward = carriers(races, pair.first)
    found = _other_place(races, pair, forward)
    if found is not None:
        return found
    warp = pair.second.warp(races)
    array = {p: races.reporter.shared_array(p[1]) for w, p in pair.seen if w == warp}
    own, (known, newest) = own_signals(races, pair.first), newest_wait(races, pair)
    work = pair.issued[1].kind if pair.issued[1] is not None else ""
    own_access = pair.second.kind == "thread" and newest not in forward
    known = known and (own_access or work in ("mma", "load", "store"))
    freed = pair.space == "tmem" and pair.second.kind == "thread"
    for place in (p for p in forward if p in own):
        if freed and not races.clocks.signals[place].awaited:
            return reason("freed", name=barrier_of(races, place))  # other barriers are for other data
        name = races.reporter.shared_array(place[1])
        if known and place == newest:
            break  # it waited for the right element: for an older phase
        others = [newest] if known else [p for p in array if p not in forward and place not in array]
        alike = (p for p in others if p not in (None, place) and array.get(p) == name and p[0] == place[0])
        other = next(alike, None)
        if other is not None:
            names = {"name": barrier_of(races, place), "other": barrier_of(races, other)}
            beside = loaded_apart(races, pair.issued[0], other)
            if beside is not None:
                return reason("load-apart", line=line_text(races, beside), **names)
            rest = other_buffer(races, pair, place, other)
            if rest:
                return reason("buffer", buffer=pair.buffer, rest=rest, **names)
            if case_of(races).never_waited():
                return None  # with a wait missing, who waits for which element is luck
            awaited = history_of(races.cluster)[place].waits  # else nothing shows that it is for a later load
            late = awaited and filled_before(races, pair, other)
            return reason("overwritten" if late else "slot", **names)
    return _other_commits(races, pair, array)


def _other_place(races: RaceDetector, pair: AccessPair, forward: list) -> Reason | None:
    """A load whose issuer has just waited for another element than the one that frees its place, although the
    other buffers that it fills after this wait are in order: this buffer's index is wrong.
    """
    op = pair.issued[1]
    if op is None or op.kind != "load" or pair.first.verb != "read":
        return None
    other = races.record.last_wait(races.clocks.warp_of(op.thread), op.at)
    array_of = races.reporter.shared_array
    own = next((p for p in forward if other and array_of(p[1]) == array_of(other[1])), None)
    if own is None or other is None or own == other:
        return None
    rest = loaded_in_order(races, pair, op)
    names = {"name": barrier_of(races, own), "other": barrier_of(races, other)}
    return reason("buffer", buffer=pair.buffer, rest=rest, **names) if rest else None


def _other_commits(races: RaceDetector, pair: AccessPair, awaited: dict) -> Reason | None:
    """The barrier that was waited for gets commits of another thread than the one that issued the MMA."""
    first, histories = pair.first, history_of(races.cluster)
    if first.kind != "mma" or first.by is None:
        return None
    commits = {
        p: {w for how, w, _ in histories[p].sources if how == "commit"} for p in awaited if p in histories
    }
    theirs = {p: warps for p, warps in commits.items() if warps}
    mine = races.clocks.warp_of(first.by)
    if not theirs or any(mine in warps for warps in theirs.values()):
        return None
    place, warps = next(reversed(theirs.items()))
    columns = others_columns(races, pair, place, warps) if pair.second.by is not None else None
    if columns is not None:
        return columns
    per_cta = races.cluster.warps_per_cta
    rounds = [p for p, found in commits.items() if found >= warps and p[0] == place[0]]
    return reason(
        "leaves-it-to-others" if len(rounds) > 1 else "other-issuer",
        name=barrier_of(races, place),
        theirs=min(warps) % per_cta,
        mine=mine % per_cta,
        work=work_of(races, first.row),
    )
