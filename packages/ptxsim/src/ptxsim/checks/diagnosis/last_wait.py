"""The evidence where no cause is proven: what the warp that should have waited had waited for last."""

from __future__ import annotations

from ptxsim.checks.diagnosis.carriers import own_signals
from ptxsim.checks.diagnosis.number_agreement import agree, role
from ptxsim.checks.race.barrier_record import MOST
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.wording import barrier_of, line_text
from ptxsim.machine.register_files import WHOLE_WARP


def not_waited_for(races: RaceDetector, pair: AccessPair, place: tuple[int, int]) -> str:
    """`full[1] was not waited for`, and, if on record, which barrier was waited for last instead. The warp is
    that of the later access, or of the earlier one if the later one signals this barrier itself.
    """
    text = f"{barrier_of(races, place)} was not waited for"
    warp, at = _place_on_record(races, pair, place)
    if warp is None:
        return text
    waits = [(n, s) for n, s in enumerate(races.clocks.steps) if s.warp == warp and s.kind == "wait"]
    last = next((s for n, s in reversed(waits) if n < at), None)
    later = next((s for n, s in waits if n >= at and s.places[0] == place), None)
    who = role(races.cluster, {warp: WHOLE_WARP})
    if last is not None and last.places[0] == place:
        return f"{text} again: the last wait for it{line_text(races, last.row)} was for an earlier phase"
    if later is not None:
        return f"{text}: {who} {agree(who, 'waits')} for it{line_text(races, later.row)} only afterwards"
    if last is None:
        return f"{text}; {who} {agree(who, 'has')} waited for no mbarrier before"
    other = barrier_of(races, last.places[0])
    return f"{text}; {who} {agree(who, 'has')} waited for {other} last{line_text(races, last.row)}"


def _place_on_record(races: RaceDetector, pair: AccessPair, place: tuple[int, int]):
    """(warp that should have waited, steps on record before its access); (None, -1) if not on record."""
    earlier = place in own_signals(races, pair.second) - own_signals(races, pair.first)
    access, op = (pair.first, pair.issued[0]) if earlier else (pair.second, pair.issued[1])
    at = pair.at if op is None and not earlier else -1 if op is None else op.at
    if access.by is None or not 0 <= at < min(MOST, len(races.clocks.steps) + 1):
        return None, -1
    return races.clocks.warp_of(access.by), at
