"""Bytes that a barrier expects but does not get, or gets although nobody expects them."""

from __future__ import annotations

from collections import Counter

from ptxsim.checks.barrier_history import BarrierHistory, ring_of
from ptxsim.checks.diagnosis.deadlock.cause import barrier_of, stuck
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.reason import Reason
from ptxsim.checks.phrases import brings_bytes, load_unit, times
from ptxsim.events.views import Cluster


def missing_bytes(model: Model, waiter: Waiter) -> Reason | None:
    barrier, history = barrier_of(model, waiter)
    if barrier is None or barrier.pending or not barrier.tx or loads_to_come(model, waiter.place):
        return None
    bytes_ = {"announced": barrier.announced, "delivered": barrier.delivered}
    facts = {"name": model.name(waiter.place), "phase": barrier.phase, **bytes_}
    each = loads_of_each_place(model.cluster, waiter.place, history) if history else 1
    if each > 1:
        return stuck("bytes-again", waiter, each=times(each), **facts)
    return stuck("bytes", waiter, **facts)


def loads_of_each_place(cluster: Cluster, place: tuple[int, int], history: BarrierHistory) -> int:
    """How often one thread loaded each place in this phase, if that makes the bytes too many; else 1."""
    barrier, loads = cluster.mbarriers.last(place), Counter((x.cta, x.first) for x in history.parts)
    threads = {(x.cta, x.first, x.warp, x.lane) for x in history.parts}
    each = min(loads.values()) if len({*loads.values()}) == 1 and len(threads) == len(loads) else 1
    return each if barrier.delivered == barrier.announced * each else 1


def loads_to_come(model: Model, place: tuple[int, int]) -> bool:
    """Whether a group that is held elsewhere would, once released, load to a barrier that lacks bytes."""
    return any(waiter.kind != "mbarrier" or waiter.place != place for waiter in late_loaders(model, place))


def late_loaders(model: Model, place: tuple[int, int]) -> list[Waiter]:
    barrier, history = model.cluster.mbarriers.last(place), model.histories.get(place)
    if barrier.tx < 0 or history is None or _came_elsewhere(model, place):
        return []
    now = {
        warp for (how, warp, _), s in history.sources.items() if how == "load" and s.phase == barrier.phase
    }
    rows = {r for r in model.rows_for(place) if brings_bytes(model.program.instrs[r])}
    rows -= {r for r in rows if _for_another(model, place, r)}
    now |= _load_to_other_ctas(model, place, rows)
    return [w for w in model.waiters if rows & model.reach(w) and not now & set(w.lanes)]


def _load_to_other_ctas(model: Model, place: tuple[int, int], rows: set[int]) -> set[int]:
    """Warps that have loaded at these rows, to barriers of the array, but to none in this one's CTA."""
    ranks: dict[int, set[int]] = {}
    for p in ring_of(model.histories, place, model.array) if model.cluster.ctas > 1 else ():
        for rank in range(model.cluster.ctas):
            history = model.histories.get((rank, p[1]))
            for how, warp, row in history.sources if history else ():
                if how == "load" and row in rows:
                    ranks.setdefault(warp, set()).add(rank)
    return {warp for warp, found in ranks.items() if place[0] not in found}


def _came_elsewhere(model: Model, place: tuple[int, int]) -> bool:
    """Whether a barrier of the same CTA got, unannounced, exactly the bytes that are missing at this one, by
    the same kind of copy.
    """
    barriers, units = model.cluster.mbarriers, _units(model, place)
    missing = barriers[place].tx
    others = [p for p, b in barriers.items() if p[0] == place[0] and b.has_bytes_of(missing)]
    return any(not units or not _units(model, p) or units & _units(model, p) for p in others)


def _units(model: Model, place: tuple[int, int]) -> set[str]:
    """What has brought bytes to a barrier so far: `TMA load`, `clusterlaunchcontrol.try_cancel`."""
    sources = model.histories[place].sources if place in model.histories else ()
    return {load_unit(model.program.instrs[row]) for how, _, row in sources if how == "load"}


def _for_another(model: Model, place: tuple[int, int], row: int) -> bool:
    """Whether the copies of a row go to one barrier only, and that is another. The program must name it, and
    the two must not be in one array.
    """
    told = {p[1] for p, h in model.histories.items() if any(r == row for _, _, r in h.sources)}
    named = "[" in model.reporter.shared_name(place[1])
    return not named and len(told) == 1 and told == model.signal_rows[row] and place[1] not in told


def own_barrier(model: Model, waiter: Waiter) -> Reason | None:
    """The bytes missing here went to the same barrier of another CTA, where nobody expects them."""
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None or barrier.tx <= 0 and barrier.pending < barrier.expected:
        return None
    awaited = {w.place for w in model.waiters}
    for place, other in model.histories.items():
        ring = ring_of(model.histories, place, model.array)
        if any(model.histories[p].waits or p in awaited for p in ring):
            continue
        loads = [row for how, _, row in other.sources if how == "load"]
        late = model.cluster.mbarriers.last(place).tx < 0
        if place[1] == waiter.place[1] and place[0] != waiter.place[0] and loads and late:
            line, name = model.line(loads[0]), model.reporter.shared_name(place[1])
            return stuck("own-barrier", waiter, theirs=place[0], line=line, name=name, mine=waiter.place[0])
    return None


def bytes_only(model: Model, waiter: Waiter) -> Reason | None:
    if any(not h.done for h in waiter.helpers if h.how in ("arrive", "commit")):
        return None
    return unexpected(model, waiter)


def unexpected(model: Model, waiter: Waiter) -> Reason | None:
    """Bytes came in a phase in which nobody has arrived."""
    barrier, _ = barrier_of(model, waiter)
    if barrier is None or barrier.pending != barrier.expected or barrier.tx >= 0:
        return None
    name = model.name(waiter.place)
    own = _in_front_of_its_own(model, waiter.place)
    if own is not None:
        return own
    return stuck("bytes-only", waiter, name=name, bytes=-barrier.tx, expected=barrier.expected)


def _in_front_of_its_own(model: Model, place: tuple[int, int]) -> Reason | None:
    """A thread that has loaded to a barrier waits for it, and would announce its bytes, for the first time,
    only after this wait.
    """
    ring = ring_of(model.histories, place, model.array)
    if any(s.announces for p in ring for s in model.histories[p].sources.values()):
        return None
    loaders = model.histories[place].loaders
    rows = {r for r in model.rows_for(place) if model.program.instrs[r].op == "mbarrier"}
    for waiter in model.waiters:
        ahead = rows & model.reach(waiter)
        if waiter.kind == "mbarrier" and waiter.place == place and ahead and loaders & set(waiter.lanes):
            line, name = model.line(min(ahead)), model.name(place)
            return stuck("waits-first", waiter, name=name, line=line)
    return None
