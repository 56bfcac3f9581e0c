"""Arrivals on a barrier that are not those its waits are meant for: beside a commit, or of the wrong CTA."""

from __future__ import annotations

from ptxsim.checks.barrier_history import history_of, ring_of, threads_in
from ptxsim.checks.diagnosis.number_agreement import role
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.phrases import source_line
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.wording import barrier_of, line_text
from ptxsim.checks.static_flow import unwaited_arrival

_BY_THREADS = ("arrive",)


def uncounted(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """The barrier waited for gets this MMA's commit, and also as many thread arrivals as it counts."""
    if pair.first.kind != "mma":
        return None
    committed = {place for _, place in races.transfers.commits.get(pair.first.agent, ())}
    for place in sorted(committed):
        history = history_of(races.cluster).get(place)
        if history is None or (pair.second.warp(races), place) not in pair.seen:
            continue
        rows = {how: row for how, _, row in history.sources}
        threads = threads_in(history.arriving(_BY_THREADS))
        if "commit" in rows and threads >= history.count:
            facts = {"line": line_text(races, rows["arrive"]), "count": history.count, "threads": threads}
            commit = source_line(races.launch.program, rows["commit"])
            return reason("commit-uncounted", name=barrier_of(races, place), commit=commit, **facts)
    return None


def slot_by_cta(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """On each element of an array only threads of one CTA arrive, from all warpgroups, while each waiting
    warp waits for one element of its own.
    """
    warp, cluster = pair.first.warp(races), races.cluster
    histories, array_of, per_cta = history_of(cluster), races.reporter.shared_array, cluster.warps_per_cta
    for place in [p for p, history in histories.items() if warp in history.arriving()]:
        ring = ring_of(histories, place, array_of)
        lanes = [histories[p].arriving(_BY_THREADS) for p in ring]
        ctas = [{w // per_cta for w in of} for of in lanes]
        groups = [{w % per_cta // 4 for w in of} for of in lanes]
        waits = [set(histories[p].waits) for p in ring]
        apart = all(len(of) == 1 for of in ctas) and len(set.union(*ctas)) == len(ring) > 1
        if not apart or groups[0] != groups[-1] or len(groups[0]) < 2 or not _each_its_own(waits):
            continue
        row = next(row for how, _, row in histories[place].sources if how == "arrive")
        lanes_of = {w: histories[p].waits[w].lanes for p in ring for w in histories[p].waits}
        facts = {
            "line": source_line(races.launch.program, row),
            "groups": " and ".join(f"WG{group}" for group in sorted(groups[0])),
            "waiters": role(cluster, lanes_of),
        }
        return reason("slot-by-cta", array=array_of(place[1]), **facts)
    return None


def _each_its_own(waits: list[set[int]]) -> bool:
    """Whether each element is waited for, and by other warps than the rest."""
    return all(waits) and sum(map(len, waits)) == len(set.union(*waits))


def by_thread(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """The issuer of an MMA arrived with a plain arrive instead of a commit."""
    first, second = pair.first, pair.second
    if first.kind != "mma":
        return None
    committed = {place for _, place in races.transfers.commits.get(first.agent, ())}
    if any(not races.clocks.signals[place].awaited for place in committed & set(races.clocks.signals)):
        return None  # it has committed, and nobody waits for that
    for place, handed in races.handshakes.handed_by(first.warp(races)).items():
        if (second.warp(races), place) in pair.seen and place not in committed:
            line = line_text(races, handed.row)
            return reason("by-thread", name=barrier_of(races, place), line=line)
    return None


def arrival_unwaited(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """One of two accesses by threads of two CTAs stands behind an arrival at the barrier of the cluster and
    before its wait.
    """
    one, other = (access.warp(races) for access in (pair.first, pair.second))
    if pair.space != "shared" or one is None or other is None:
        return None
    if one // races.cluster.warps_per_cta == other // races.cluster.warps_per_cta:
        return None
    for access in (pair.second, pair.first):
        row = unwaited_arrival(races.launch.program, access.row)
        if row is not None:
            return reason("arrival-unwaited", line=line_text(races, row), what=f"the {access.verb}")
    return None
