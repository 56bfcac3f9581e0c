"""Phases that complete because more arrivals come than expected: each with a count, or on every element."""

from __future__ import annotations

from ptxsim.checks.barrier_history import threads_in
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.number_agreement import agree
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.events.records import Place


def each_for_all(case: Case, place: Place) -> Reason | None:
    """Several threads arrive with a count, which adds up to more than the barrier expects."""
    history = case.histories[place]
    per_row: dict[int, dict[int, int]] = {}  # row -> warp -> lanes
    for (how, warp, row), signals in history.sources.items():
        if how == "arrive" and signals.makes > 1:
            per_row.setdefault(row, {})[warp] = signals.lanes
    for row, lanes in per_row.items():
        threads = threads_in(lanes)
        makes = max(s.makes for (_, _, at), s in history.sources.items() if at == row)
        if threads > 1 and threads * makes > history.count:
            who = case.role(lanes)
            facts = {"makes": makes, "all": threads * makes, "count": history.count}
            return reason("each-for-all", row, who=who, verb=agree(who, "arrives"), **facts)
    return None


def all_at_each(case: Case, place: Place) -> Reason | None:
    """At one line, all threads arrive on each element of an array whose elements they should share out."""
    ring = case.ring(place)
    if len(ring) < 2:
        return None
    lines = [_arrivals_by_line(case, p) for p in ring]
    for line, (row, lanes) in lines[ring.index(place)].items():
        threads = threads_in(lanes)
        alike = all(each.get(line, (0, {}))[1] == lanes for each in lines)
        if alike and threads == len(ring) * case.histories[place].count:
            who = case.role(lanes)
            facts = {"who": who, "verb": agree(who, "arrives"), "array": case.array(place)}
            return reason("all-at-each", row, threads=threads, count=case.histories[place].count, **facts)
    return None


def _arrivals_by_line(case: Case, place: Place) -> dict[str, tuple[int, dict[int, int]]]:
    """Line -> (a row, warp -> lanes that arrive there)."""
    lines: dict[str, tuple[int, dict[int, int]]] = {}
    for (how, warp, row), signals in case.histories[place].sources.items():
        if how == "arrive":
            line = case.line(row)
            lines.setdefault(line, (row, {}))[1][warp] = signals.lanes
    return lines
