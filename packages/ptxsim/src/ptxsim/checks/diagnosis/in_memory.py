"""Races that come from where two accesses are: two buffers share memory, a load fills a place whose data its
own thread has waited for but not used yet, or the columns read are those of another barrier's products.
"""

from __future__ import annotations

import itertools

from ptxsim.checks.barrier_history import history_of, ring_of
from ptxsim.checks.diagnosis.carriers import awaited_by_peers, carriers
from ptxsim.checks.diagnosis.out_of_step import newest_wait
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.unseen_arrival import others_waited
from ptxsim.checks.race.async_work import Issued
from ptxsim.checks.race.barrier_record import MOST
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.shadow_tmem import place_of
from ptxsim.checks.race.wording import barrier_of, line_text, work_of
from ptxsim.events.records import BulkCopy

_FILLS = ("bytes", "mma", "wgmma")  # the accesses that bring operands and that consume them
_WRITES_BACK = ("thread", "source")  # the accesses that store a result there and that take it


def one_memory(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """The place belongs to two named buffers; one access is for operands, the other for a result. If other
    warps of the warpgroup have waited for the barrier that passes the place on, that wait is the missing edge
    instead.
    """
    kinds = {pair.first.kind, pair.second.kind}
    if pair.space != "shared" or not (kinds & set(_FILLS) and kinds & set(_WRITES_BACK)):
        return None
    offset = pair.position % races.history.window
    here = [n for n in races.reporter.names if n[1] != "uint64" and n[2] <= offset < n[2] + n[3]]
    if len(here) < 2:
        return None
    for access, by_unit in ((pair.second, pair.first), (pair.first, pair.second)):
        for place in awaited_by_peers(races, access, carriers(races, by_unit)):
            unwaited = others_waited(races, pair, place, (by_unit, access))
            if unwaited is not None:  # so the two buffers are meant to share this memory
                return unwaited
    (one, _, first, _), (other, _, start, _) = sorted(here, key=lambda n: n[2])[:2]
    return reason("one-memory", one=one, other=other, apart=start - first)


def load_outside(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """One side is a load past the end of its tensor's innermost axis: usually one round too many."""
    for access in (pair.first, pair.second):
        op = races.transfers.find(access.agent, access.epoch, access.row) if access.kind == "bytes" else None
        if op is None or op.copy is None or not op.copy.tensor.misses(op.copy.start):
            continue
        if not op.copy.tensor.array.size:
            continue  # it reads no global memory
        tensor, warp = op.copy.tensor, access.warp(races)
        if op.copy.start[0] >= tensor.dims[0]:
            facts = {"tensor": tensor.name or "its tensor", "end": tensor.dims[0]}
            return reason("load-outside", access.row, warp, **facts)
    return None


def loaded_too_soon(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A load is issued before the MMA that should consume what it overwrites: its thread has waited for that
    data and issued nothing since.
    """
    product, load = _product_and_load(pair)
    if product is None or load is None or pair.space != "shared" or product.thread != load.thread:
        return None
    steps, warp = races.clocks.steps, races.clocks.warp_of(load.thread)
    if not 0 <= load.at < product.at <= min(MOST, len(steps)) or not steps[load.at].places:
        return None
    place = steps[load.at].places[0]
    behind = [s for s in steps[load.at : product.at] if s.warp == warp and s.kind == "wait"]
    before = [s for s in steps[: load.at] if s.warp == warp and (s.kind == "use" or _waits(s, place))]
    if any(_waits(s, place) for s in behind) or not before or before[-1].kind != "wait":
        return None
    waited, issued = line_text(races, before[-1].row), line_text(races, product.row)
    return reason("loaded-too-soon", name=barrier_of(races, place), waited=waited, issued=issued)


def overtaken(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A load overwrites what a tensor core still reads: data that its thread has waited for, brought there by
    another load that reports to another barrier.
    """
    product, load = _product_and_load(pair)
    if product is None or load is None or load.copy is None or pair.space != "shared":
        return None
    warp, own = races.clocks.warp_of(product.thread), set(load.copy.barriers)
    awaited = {p for w, p in pair.seen if w == warp}
    loads = ((op, op.copy) for op in races.transfers.known() if op.copy)
    meant = [op for op, copy in loads if awaited & {*copy.barriers} and _writes(races, copy, pair)]
    done = carriers(races, pair.first if pair.first.kind == "mma" else pair.second)
    if own & awaited or not meant or not done:
        return None
    facts = {"name": barrier_of(races, done[0]), "work": work_of(races, product.row)}
    at = load.row, races.clocks.warp_of(load.thread)
    return reason("overtaken", *at, loaded=line_text(races, meant[0].row), **facts)


def _writes(races: RaceDetector, copy: BulkCopy, pair: AccessPair) -> bool:
    """Whether a copy writes the byte where two accesses meet."""
    rank, offset = divmod(pair.position, races.history.window)
    return any(s.rank == rank and s.first <= offset <= s.last for s in copy.targets)


def product_unwaited(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """An MMA that its thread issues with no wait for data since its last commit, although other MMAs have
    such a wait, or nobody waits for data at all.
    """
    (product, load), steps = _product_and_load(pair), races.clocks.steps
    if product is None or load is None or pair.space != "shared":
        return None
    if not (0 <= load.at < len(steps) and 0 <= product.at <= MOST):
        return None
    array_of, warp = races.reporter.shared_array, races.clocks.warp_of(product.thread)
    arrays = {array_of(p[1]) for p in steps[load.at].places}
    waited = any(h.waits for p, h in history_of(races.cluster).items() if array_of(p[1]) in arrays)
    waits = (s for s in steps if s.warp == warp and s.kind == "wait")
    mine = [s for s in waits if array_of(s.places[0][1]) in arrays]
    own = (s for s in reversed(steps[: product.at]) if s.warp == warp)
    since = [*itertools.takewhile(lambda s: s.kind != "commit", own)]
    if any(s in mine for s in since) or waited != bool(mine):
        return None
    if len(ring_of(history_of(races.cluster), steps[load.at].places[0], array_of)) == 1:
        known = (history_of(races.cluster)[s.places[0]].waits.get(warp) for s in mine)
        fresh = any(waits is not None and waits.fresh is not None for waits in known)
        if fresh or any(s in mine for s in steps[load.at : product.at]):
            return None  # one wait for all rounds
    if not mine and any(_by_threads(races, s) for s in since):
        return None  # it waits for those who should have waited
    where = f"other rounds have one{line_text(races, mine[0].row)}" if mine else "nobody has one in this run"
    facts = {"work": work_of(races, product.row), "product": line_text(races, product.row), "where": where}
    return reason("product-unwaited", name=" or ".join(sorted(arrays)), **facts)


def _by_threads(races: RaceDetector, step) -> bool:
    """Whether a step is a wait for threads that read loaded data, even if they read it too early."""
    if step.kind != "wait":
        return False
    lanes = history_of(races.cluster)[step.places[0]].arriving(("arrive",))
    sides = [{a.kind: a.warp(races) for a in (p.first, p.second)} for p in races.history.pairs.values()]
    return any("bytes" in side and side.get("thread") in lanes for side in sides)


def _product_and_load(pair: AccessPair) -> tuple[Issued | None, Issued | None]:
    """The MMA and the load, if the two accesses are one of each."""
    sides = {access.kind: op for access, op in zip((pair.first, pair.second), pair.issued, strict=True)}
    return sides.get("mma"), sides.get("bytes")


def _waits(step, place: tuple[int, int]) -> bool:
    return step.kind == "wait" and place in step.places


def other_columns(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """The MMAs that the reader has waited for write other columns than it reads; the MMAs that write those
    are announced at another barrier of the array.
    """
    if (pair.first.kind, pair.second.kind) != ("mma", "ld") or pair.space != "tmem":
        return None
    _, place = newest_wait(races, pair)
    announced = _announced(races, pair.first.agent)
    *_, column = place_of(pair.position)
    if place not in announced or any(_holds(span, column) for span in announced[place]):
        return None
    array_of = races.reporter.shared_array
    alike = [p for p, spans in announced.items() if p != place and any(_holds(s, column) for s in spans)]
    other = next((p for p in alike if array_of(p[1]) == array_of(place[1])), None)
    if other is None or place not in history_of(races.cluster):
        return None
    first, end = min(announced[place])
    names = {"name": barrier_of(races, place), "other": barrier_of(races, other)}
    return reason("other-columns", first=first, last=end - 1, column=column, **names)


def columns_stay(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """Products that elements of one array announce to their reader by turns all go to the same columns."""
    sides = {access.kind: access for access in (pair.first, pair.second)}
    if pair.space != "tmem" or sides.keys() != {"mma", "ld"}:
        return None
    array_of, histories = races.reporter.shared_array, history_of(races.cluster)
    announced, reader = _announced(races, sides["mma"].agent), sides["ld"].warp(races)
    if reader is None:
        return None
    awaited = [p for p in announced if p in histories and reader in histories[p].waits]
    awaited = [p for p in awaited if not races.record.refills(reader, p)]
    for place in awaited:
        ring = [p for p in awaited if p[0] == place[0] and array_of(p[1]) == array_of(place[1])]
        spans = {span for p in ring for span in announced[p]}
        if len(ring) > 1 and len(spans) == 1 and all(announced[p] for p in ring):
            ((first, end),) = spans
            names = " and ".join(barrier_of(races, p) for p in sorted(ring)[:2])
            return reason("columns-stay", names=names, first=first, last=end - 1)
    return None


def _holds(span: tuple[int, int], column: int) -> bool:
    return span[0] <= column < span[1]


def _announced(races: RaceDetector, queue: int) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """Barrier -> columns of a queue's MMAs between its array's previous commit and its own."""
    array_of = races.reporter.shared_array
    products = races.transfers.works_of(queue)
    found: dict[tuple[int, int], set[tuple[int, int]]] = {}
    last: dict[tuple[int, str], int] = {}
    for at, place in sorted(races.transfers.commits.get(queue, [])):
        array = place[0], array_of(place[1])
        own = {op.columns for epoch, op in products if last.get(array, -1) < epoch <= at and op.columns}
        found.setdefault(place, set()).update(own)
        last[array] = at
    return found
