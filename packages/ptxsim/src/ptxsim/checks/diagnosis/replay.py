"""Replays the record of a cluster's barriers, with work held back or with a repair applied.

It does as much as possible: a step is taken as soon as the earlier steps of its lanes are done, and a wait is
checked before anyone arrives again. So a step that is not reached depends on what is held back.
"""

from __future__ import annotations

from collections.abc import Collection

from ptxsim.checks.race.barrier_record import BarrierStep, CtaBarrierState, MbarrierState
from ptxsim.machine.register_files import WHOLE_WARP

Order = dict[int, list[tuple[int, BarrierStep]]]  # warp -> (number, step) in the warp's own order
_WINDOW = 64  # steps by which lanes of a warp may be apart


class RecordReplay:
    """One replay of a record. `done` holds the numbers of the steps that could be taken."""

    def __init__(self, order: Order, counts: dict, held: Collection[int] = ()):
        self.todo = {warp: list(steps) for warp, steps in order.items()}
        self.barriers = {place: MbarrierState(count, count) for place, count in counts.items()}
        self.bars: dict = {}  # CTA barrier -> its CtaBarrierState
        self.held, self.done = frozenset(held), set[int]()
        while self._pass_waits() or self._take_one():
            pass

    def _pass_waits(self) -> bool:
        passed = False
        for warp in self.todo:
            while (at := self._next(warp, waits=True)) is not None:
                self.done.add(self.todo[warp].pop(at)[0])
                passed = True
        return passed

    def _take_one(self) -> bool:
        """Takes the oldest possible step that is no wait; False if there is none."""
        ready = [(self.todo[w][at][0], w, at) for w in self.todo if (at := self._next(w, False)) is not None]
        if not ready:
            return False
        number, warp, at = min(ready)
        step = self.todo[warp][at][1]
        if step.kind == "bar":
            bar = self.bars.get(step.places[0], CtaBarrierState())
            self.bars[step.places[0]] = bar.after(step)
            if step.more:
                self.todo[warp][at] = number, step._replace(kind="there", amount=bar.over)
                return True
        elif number not in self.held:
            for place in filter(self.barriers.__contains__, step.places):
                self.barriers[place] = self.barriers[place].after(step)
        del self.todo[warp][at]
        self.done.add(number)
        return True

    def _next(self, warp: int, waits: bool) -> int | None:
        blocked = 0
        for at, (_, step) in enumerate(self.todo[warp][:_WINDOW]):
            looks = step.kind in ("wait", "there")
            if not step.lanes & blocked and looks == waits and (not looks or self._open(step)):
                return at
            blocked |= step.lanes
            if blocked == WHOLE_WARP:
                return None
        return None

    def _open(self, step: BarrierStep) -> bool:
        if step.kind == "there":
            return self.bars[step.places[0]].over > step.amount
        barrier = self.barriers.get(step.places[0])
        return barrier is not None and barrier.lets_pass(step)


def by_warp(steps: list[BarrierStep]) -> Order:
    order: Order = {}
    for number, step in enumerate(steps):
        order.setdefault(step.warp, []).append((number, step))
    return order
