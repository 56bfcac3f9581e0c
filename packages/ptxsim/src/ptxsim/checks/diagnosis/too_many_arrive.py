"""Phases that complete because more arrivals come than expected: each with a count, or on every element."""

from __future__ import annotations

from ptxsim.checks.barrier_history import BarrierHistory, ring_of, threads_in
from ptxsim.checks.diagnosis.number_agreement import agree, role
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.phrases import source_line
from ptxsim.events.records import Place
from ptxsim.events.views import Cluster


def each_for_all(cluster: Cluster, history: BarrierHistory) -> Reason | None:
    """Several threads arrive with a count, which adds up to more than the barrier expects."""
    per_row: dict[int, dict[int, int]] = {}  # row -> warp -> lanes
    for (how, warp, row), signals in history.sources.items():
        if how == "arrive" and signals.makes > 1:
            per_row.setdefault(row, {})[warp] = signals.lanes
    for row, lanes in per_row.items():
        threads = threads_in(lanes)
        makes = max(s.makes for (_, _, at), s in history.sources.items() if at == row)
        if threads > 1 and threads * makes > history.count:
            who = role(cluster, lanes)
            facts = {"makes": makes, "all": threads * makes, "count": history.count}
            return reason("each-for-all", row, who=who, verb=agree(who, "arrives"), **facts)
    return None


def all_at_each(cluster: Cluster, histories: dict, place: Place, reporter) -> Reason | None:
    """At one line, all threads arrive on each element of an array whose elements they should share out."""
    ring = ring_of(histories, place, reporter.shared_array)
    if len(ring) < 2:
        return None
    lines = [_arrivals_by_line(cluster, histories[p]) for p in ring]
    for line, (row, lanes) in lines[ring.index(place)].items():
        threads = threads_in(lanes)
        alike = all(each.get(line, (0, {}))[1] == lanes for each in lines)
        if alike and threads == len(ring) * histories[place].count:
            who = role(cluster, lanes)
            facts = {"who": who, "verb": agree(who, "arrives"), "array": reporter.shared_array(place[1])}
            return reason("all-at-each", row, threads=threads, count=histories[place].count, **facts)
    return None


def _arrivals_by_line(cluster: Cluster, history: BarrierHistory) -> dict[str, tuple[int, dict[int, int]]]:
    """Line -> (a row, warp -> lanes that arrive there)."""
    lines: dict[str, tuple[int, dict[int, int]]] = {}
    for (how, warp, row), signals in history.sources.items():
        if how == "arrive":
            line = source_line(cluster.program, row)
            lines.setdefault(line, (row, {}))[1][warp] = signals.lanes
    return lines
