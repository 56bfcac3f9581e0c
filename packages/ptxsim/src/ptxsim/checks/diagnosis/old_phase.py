"""A wait that passed too early because of an old phase: that of a fresh barrier, or one seen before."""

from __future__ import annotations

from ptxsim.checks.barrier_history import history_of
from ptxsim.checks.diagnosis.carriers import carriers, own_signals
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.unseen_arrival import data_flow
from ptxsim.checks.phrases import phase_name
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.wording import barrier_of, line_text


def passed_at_once(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """The reader waited for a barrier that the writer signals, but passed because it was fresh."""
    flow = data_flow(pair)
    warp = flow[1].warp(races) if flow else None
    if flow is None or warp is None:
        return None
    own = own_signals(races, flow[0])
    for place in (p for p in carriers(races, flow[0]) if p in own):
        seen, history = pair.seen.get((warp, place)), history_of(races.cluster).get(place)
        waits = history.waits.get(warp) if history else None
        if pair.space == "tmem" and races.record.refills(warp, place):
            continue  # this barrier hands operands back
        if seen is not None and seen.phase < 0 and waits is not None and waits.fresh is not None:
            names = {"name": barrier_of(races, place), "line": line_text(races, waits.fresh)}
            return reason("fresh", waits.fresh, warp, **names)
    return None


def passed_again(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A wait of one access's warp, on a barrier that passes the other access on, saw one phase twice."""
    for access, other in (pair.second, pair.first), (pair.first, pair.second):
        for place in carriers(races, other):
            seen = pair.seen.get((access.warp(races), place))
            if seen is not None and seen.again is not None:
                phase, row = seen.again
                name, line = barrier_of(races, place), line_text(races, row)
                return reason("again", name=name, line=line, phase=phase_name(phase))
    return None
