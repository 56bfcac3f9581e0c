"""Every interleaving of a short record of barriers: does any of them leave a warp behind?

Counts of arrivals say what may hang, and where it is luck which arrivals make a phase they can say too much.
A record of a few steps, of threads alone, is searched outright instead. It is the whole truth where nothing
but its barriers makes a warp wait or decides what it does.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxsim.checks.race.barrier_record import BarrierRecord, CtaBarrierState, MbarrierState, Step
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.late_operations import hangs_on_order

MOST_STEPS, MOST_STATES = 64, 20_000


class _State(NamedTuple):
    at: tuple[int, ...]  # steps that each warp has done
    asleep: frozenset[int]  # warps that wait at a CTA barrier
    mbarriers: tuple[MbarrierState, ...]
    rounds: tuple[CtaBarrierState, ...]  # of each CTA barrier
    torn: bool = False  # an arrival of several lanes would be of two phases


def ends_in_every_order(cluster: Cluster, record: BarrierRecord) -> bool | None:
    """False: an interleaving hangs. None: this cannot be told from the record. Searched once."""
    if record.ends is None:
        record.ends = (_search(cluster, record),)
    return record.ends[0]


def _search(cluster: Cluster, record: BarrierRecord) -> bool | None:
    steps, counts = record.steps, record.counts
    told = record.whole and cluster.ctas == 1 and not hangs_on_order(cluster.program)
    told = told and all(cluster.mbarriers[place].expected == count for place, count in counts.items())
    if not told or len(steps) > MOST_STEPS or not all(_of_threads(step, counts) for step in steps):
        return None
    search = _Search([s for s in steps if s.kind != "use"], counts)
    seen, todo = {search.start}, [search.start]
    while todo:
        state = todo.pop()
        following = search.following(state)
        if len(seen) > MOST_STATES or state.torn:
            return None
        if not following and not search.ended(state):
            return False
        fresh = [one for one in following if one not in seen]
        seen.update(fresh)
        todo += fresh
    return True


def _of_threads(step: Step, counts: dict) -> bool:
    """Is it a wait or an arrival of threads, of which the record says all?"""
    if step.kind == "bar":
        return step.amount % 32 == 0
    return (
        step.kind == "use" or step.kind in ("wait", "arrive") and not step.more and step.places[0] in counts
    )


class _Search:
    def __init__(self, steps: list[Step], counts: dict):
        warps = sorted({step.warp for step in steps})
        self.steps = [[step for step in steps if step.warp == warp] for warp in warps]
        self.places = list(counts)
        self.bars = sorted({step.places[0] for step in steps if step.kind == "bar"})
        mbarriers = tuple(MbarrierState(count, count) for count in counts.values())
        self.start = _State((0,) * len(warps), frozenset(), mbarriers, (CtaBarrierState(),) * len(self.bars))

    def ended(self, state: _State) -> bool:
        return all(at == len(steps) for at, steps in zip(state.at, self.steps, strict=True))

    def following(self, state: _State) -> list[_State]:
        found = []
        for warp, steps in enumerate(self.steps):
            if state.at[warp] < len(steps) and warp not in state.asleep:
                after = getattr(self, "_" + steps[state.at[warp]].kind)(state, warp, steps[state.at[warp]])
                if after is not None:
                    found.append(after)
        return found

    def _wait(self, state: _State, warp: int, step: Step) -> _State | None:
        barrier = state.mbarriers[self.places.index(step.places[0])]
        return state._replace(at=_one_more(state.at, {warp})) if barrier.lets_pass(step) else None

    def _arrive(self, state: _State, warp: int, step: Step) -> _State:
        number = self.places.index(step.places[0])
        barrier = state.mbarriers[number]
        mbarriers = _with(state.mbarriers, number, barrier.after(step))
        torn = step.amount > barrier.pending
        return state._replace(at=_one_more(state.at, {warp}), mbarriers=mbarriers, torn=torn)

    def _bar(self, state: _State, warp: int, step: Step) -> _State:
        number = self.bars.index(step.places[0])
        now, asleep = state.rounds[number].after(step), state.asleep
        at = state.at if step.more else _one_more(state.at, {warp})
        if step.more:
            asleep |= {warp}
        if now.over > state.rounds[number].over:
            woken = {w for w in asleep if self.steps[w][at[w]].places[0] == step.places[0]}
            at, asleep = _one_more(at, woken), asleep - woken
        return state._replace(at=at, asleep=asleep, rounds=_with(state.rounds, number, now))


def _with(states: tuple, number: int, state) -> tuple:
    return (*states[:number], state, *states[number + 1 :])


def _one_more(at: tuple[int, ...], warps: set[int]) -> tuple[int, ...]:
    return tuple([n + (warp in warps) for warp, n in enumerate(at)])
