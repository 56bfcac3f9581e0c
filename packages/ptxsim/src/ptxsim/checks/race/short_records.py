"""Searches every interleaving of a short record of barriers for one that leaves a warp behind.

Counts of arrivals show what may hang, but where timing decides which arrivals make a phase they show too
much. A record of a few steps by threads alone is searched exhaustively instead. The search is exact if only
the record's barriers make a warp wait or decide what it does.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from ptxsim.checks.race.barrier_record import (
    BarrierRecord,
    BarrierStep,
    CtaBarrierState,
    MbarrierState,
    Outlook,
)
from ptxsim.events.views import Cluster
from ptxsim.machine.late_operations import hangs_on_order

MOST_STEPS, MOST_STATES = 64, 20_000
FEW_STATES = 2_000  # if nothing else shows that timing matters: 50 ms


class _State(NamedTuple):
    at: tuple[int, ...]  # number of steps that each warp has done
    asleep: frozenset[int]  # warps that wait at a CTA barrier
    mbarriers: tuple[MbarrierState, ...]
    cta_barriers: tuple[CtaBarrierState, ...]
    torn: bool = False  # an arrival of several lanes would be split between two phases


def ends_in_every_order(cluster: Cluster, record: BarrierRecord) -> bool | None:
    """Whether every interleaving ends. False: one hangs. None: the record cannot tell. Searched only once."""
    return _searched(cluster, record, MOST_STATES).ends


def outlook(cluster: Cluster, record: BarrierRecord) -> Outlook:
    """What holds for all interleavings, by a smaller search: for records where nothing else shows that
    timing matters.
    """
    return _searched(cluster, record, FEW_STATES)


def _searched(cluster: Cluster, record: BarrierRecord, most: int) -> Outlook:
    if record.outlook is None:
        steps, counts = [step for step in record.steps if step.kind != "use"], record.counts
        told = record.whole and cluster.ctas == 1 and len(record.steps) <= MOST_STEPS
        left = {place: barrier.expected for place, barrier in cluster.mbarriers.items()}
        told = told and all(left.get(place) == count for place, count in counts.items())
        told = told and all(_of_threads(step, counts) for step in steps) and _in_order(steps)
        told = told and not hangs_on_order(cluster.program)
        key = (*steps, *counts.items(), most)
        if told and key not in record.searched:
            record.searched[key] = _search(steps, counts, most)
        record.outlook = record.searched[key] if told else Outlook()
    return record.outlook


def _search(steps: list[BarrierStep], counts: dict, most: int) -> Outlook:
    search = _Search(steps, counts)
    seen, todo = {search.start}, [search.start]
    while todo:
        state = todo.pop()
        following = search.following(state)
        if len(seen) > most or state.torn:
            return Outlook()
        if not following and not search.ended(state):
            waits = (step for step in search.next(state) if step.kind == "wait")
            return Outlook(False, next(waits, None))
        fresh = [one for one in following if one not in seen]
        seen.update(fresh)
        todo += fresh
    several = (warp_at for warp_at, phases in search.passed.items() if len(phases) > 1)
    return Outlook(True, by_luck=next((search.steps[warp][at] for warp, at in several), None))


def _in_order(steps: list[BarrierStep]) -> bool:
    """Whether each warp takes its steps one after another in every interleaving: one lane of it takes them
    all.
    """
    lanes: dict[int, int] = {}
    for step in steps:
        lanes[step.warp] = lanes.get(step.warp, step.lanes) & step.lanes
    return all(lanes.values())


def _of_all(steps: list[BarrierStep]) -> bool:
    """Whether every warp that uses this CTA barrier waits there in every phase."""
    warps = {step.warp for step in steps}
    return all(step.kind == "bar" and step.more and step.amount == 32 * len(warps) for step in steps)


def _of_threads(step: BarrierStep, counts: dict) -> bool:
    """Whether a step is a wait or an arrival of threads that the record describes completely."""
    if step.kind == "bar":
        return step.amount % 32 == 0
    return step.kind in ("wait", "arrive") and not step.more and step.places[0] in counts


class _Search:
    def __init__(self, steps: list[BarrierStep], counts: dict):
        warps = sorted({step.warp for step in steps})
        self.steps = [[step for step in steps if step.warp == warp] for warp in warps]
        self.places = list(counts)
        # a wait as (warp, its number there) -> phases that were complete when it passed
        self.passed: dict[tuple[int, int], set[int]] = defaultdict(set)
        self.bars = sorted({step.places[0] for step in steps if step.kind == "bar"})
        self.whole = {bar for bar in self.bars if _of_all([s for s in steps if (bar,) == s.places])}
        mbarriers = tuple(MbarrierState(count, count) for count in counts.values())
        self.start = _State((0,) * len(warps), frozenset(), mbarriers, (CtaBarrierState(),) * len(self.bars))

    def ended(self, state: _State) -> bool:
        return all(at == len(steps) for at, steps in zip(state.at, self.steps, strict=True))

    def next(self, state: _State) -> list[BarrierStep]:
        return [steps[at] for at, steps in zip(state.at, self.steps, strict=True) if at < len(steps)]

    def following(self, state: _State) -> list[_State]:
        """The states after each step that can be taken; only one state if its step and the other warps do
        not affect each other.
        """
        found = []
        for warp, steps in enumerate(self.steps):
            if state.at[warp] < len(steps) and warp not in state.asleep:
                step = steps[state.at[warp]]
                after = getattr(self, "_" + step.kind)(state, warp, step)
                if after is not None and self._alone(state, warp, step):
                    return [after]
                if after is not None:
                    found.append(after)
        return found

    def _alone(self, state: _State, warp: int, step: BarrierStep) -> bool:
        """Whether this step may be taken first, whatever the other warps do later."""
        if step.kind == "bar":
            return step.places[0] in self.whole
        kinds = ("arrive",) if step.kind == "wait" else ("arrive", "wait")
        others = (s for w, at in enumerate(state.at) if w != warp for s in self.steps[w][at:])
        return not any(s.kind in kinds and s.places == step.places for s in others)

    def _wait(self, state: _State, warp: int, step: BarrierStep) -> _State | None:
        barrier = state.mbarriers[self.places.index(step.places[0])]
        if not barrier.lets_pass(step):
            return None
        self.passed[warp, state.at[warp]].add(barrier.over)
        return state._replace(at=_one_more(state.at, {warp}))

    def _arrive(self, state: _State, warp: int, step: BarrierStep) -> _State:
        number = self.places.index(step.places[0])
        barrier = state.mbarriers[number]
        mbarriers = _with(state.mbarriers, number, barrier.after(step))
        torn = step.amount > barrier.pending
        return state._replace(at=_one_more(state.at, {warp}), mbarriers=mbarriers, torn=torn)

    def _bar(self, state: _State, warp: int, step: BarrierStep) -> _State:
        number = self.bars.index(step.places[0])
        now, asleep = state.cta_barriers[number].after(step), state.asleep
        at = state.at if step.more else _one_more(state.at, {warp})
        if step.more:
            asleep |= {warp}
        if now.over > state.cta_barriers[number].over:
            woken = {w for w in asleep if self.steps[w][at[w]].places[0] == step.places[0]}
            at, asleep = _one_more(at, woken), asleep - woken
        return state._replace(at=at, asleep=asleep, cta_barriers=_with(state.cta_barriers, number, now))


def _with(states: tuple, number: int, state) -> tuple:
    return (*states[:number], state, *states[number + 1 :])


def _one_more(at: tuple[int, ...], warps: set[int]) -> tuple[int, ...]:
    return tuple([n + (warp in warps) for warp, n in enumerate(at)])
