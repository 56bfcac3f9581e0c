"""Groups of warps that hand a buffer to each other by CTA barriers: one arrives where the other waits."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from ptxsim.checks.cta_barriers import CtaBarrier, cta_barriers
from ptxsim.checks.diagnosis.number_agreement import agree, role
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.phrases import copies_of, line_at, lines_text, source_line, spot
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.static_flow import comes_first, way_without_barrier
from ptxsim.events.views import Cluster
from ptxsim.machine.register_files import WHOLE_WARP


def out_of_turn(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """What is wrong with the CTA barriers by which the warps of two accesses take turns."""
    one, other = pair.first.warp(races), pair.second.warp(races)
    per_cta = races.cluster.warps_per_cta
    if pair.space != "shared" or one is None or other is None or one // per_cta != other // per_cta:
        return None
    cta, found = one // per_cta, races.reporter.by_identity
    alone = nobody_waits(races.cluster, cta, {one, other})
    if alone is not None:
        return alone
    for number, barrier in _of_cta(races.cluster, cta):
        again = found.get(("collective", ("luck", number)))
        line = line_at(races.launch.program, again.where) if again and again.where.get("line") else None
        if line is not None and barrier.ways(one) != barrier.ways(other):
            return reason("phase-again", number=number, line=lines_text([line]))
    return _before_turn(races, pair) if _take_turns(races.cluster, cta, one, other) else None


def nobody_waits(cluster: Cluster, cta: int, warps: set[int]) -> Reason | None:
    """A CTA barrier on which one of these warps arrives and at which no thread has ever waited."""
    for number, barrier in _of_cta(cluster, cta):
        by = {warp: WHOLE_WARP for come in barrier.warps.values() for warp in come}
        if not barrier.waited and by.keys() & warps and not _go_round(cluster, cta, by):
            who, line = role(cluster, by), source_line(cluster.program, min(barrier.warps))
            return reason("nobody-waits", who=who, arrives=agree(who, "arrives"), number=number, line=line)
    return None


def _go_round(cluster: Cluster, cta: int, but: dict[int, int]) -> bool:
    """Whether other warps wait at several CTA barriers at one line: they may still come to the next."""
    numbers: dict[Hashable, set[int]] = {}  # line -> CTA barriers at which other warps have waited there
    for number, barrier in _of_cta(cluster, cta):
        for row, warps in barrier.warps.items():
            if any(True in barrier.ways(warp) for warp in warps - but.keys()):
                numbers.setdefault(spot(cluster.program, row), set()).add(number)
    return any(len(of) > 1 for of in numbers.values())


def _of_cta(cluster: Cluster, cta: int) -> Iterator[tuple[int, CtaBarrier]]:
    known = cta_barriers(cluster).items()
    return ((number, barrier) for (of, number), barrier in known if of == cta)


def _take_turns(cluster: Cluster, cta: int, one: int, other: int) -> bool:
    """Whether each of two warps waits at a CTA barrier on which the other one arrives without waiting."""
    ways = [(barrier.ways(one), barrier.ways(other)) for _, barrier in _of_cta(cluster, cta)]
    return ({True}, {False}) in ways and ({False}, {True}) in ways


def _before_turn(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """One of the accesses stands before the wait for its turn."""
    program = races.launch.program
    for access in (pair.first, pair.second):
        warp = access.warp(races)
        if warp is None:
            continue
        for number, barrier in _of_cta(races.cluster, warp // races.cluster.warps_per_cta):
            for row in barrier.rows(warp) if barrier.ways(warp) == {True} else ():
                behind = way_without_barrier(program, access.row, row)
                first = comes_first(program, copies_of(program, access.row), set(barrier.rows(warp)))
                if first and behind and not way_without_barrier(program, row, access.row):
                    lines = {"line": source_line(program, row), "at": source_line(program, access.row)}
                    return reason("before-turn", number=number, verb=access.verb, **lines)
    return None
