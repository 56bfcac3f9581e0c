"""Plays the record of a cluster's barriers again, with work held back or with a repair in it.

Of what may happen, as much as can: a step comes as soon as those of its lanes before it have, and a wait is
looked at before anybody arrives again. So whatever is not reached comes after what is held back.
"""

from __future__ import annotations

from collections.abc import Collection

from ptxsim.checks.race.barrier_record import Step

Order = dict[int, list[tuple[int, Step]]]  # warp -> its steps with their numbers, in its own order
_WINDOW = 64  # steps of a warp that lanes may be apart


class Barrier:
    """An mbarrier: phases that are over, arrivals that this one waits for, bytes."""

    def __init__(self, count: int):
        self.phase, self.count, self.pending, self.bytes = 0, count, count, 0

    def signal(self, arrivals: int, announced: int = 0, delivered: int = 0) -> None:
        self.pending -= arrivals
        self.bytes += announced - delivered
        if self.pending <= 0 and not self.bytes:
            self.phase, self.pending = self.phase + 1, self.count

    def lets_pass(self, parity: int) -> bool:
        return (self.phase - 1) & 1 == parity


class Replay:
    """One run of a record. `done` holds the numbers of the steps that could be taken."""

    def __init__(self, order: Order, counts: dict, held: Collection[int] = ()):
        self.todo = {warp: list(steps) for warp, steps in order.items()}
        self.barriers = {place: Barrier(count) for place, count in counts.items()}
        self.bars: dict = {}  # CTA barrier -> [rounds that are over, threads that are there]
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
        """The oldest step that can be taken and is no wait."""
        ready = [(self.todo[w][at][0], w, at) for w in self.todo if (at := self._next(w, False)) is not None]
        if not ready:
            return False
        number, warp, at = min(ready)
        step = self.todo[warp][at][1]
        if step.kind == "bar" and step.more:
            self.todo[warp][at] = number, step._replace(kind="there", amount=self._come(step))
            return True
        del self.todo[warp][at]
        self.done.add(number)
        if step.kind == "bar":
            self._come(step)
        elif number not in self.held:
            self._signal(step)
        return True

    def _next(self, warp: int, waits: bool) -> int | None:
        blocked = 0
        for at, (_, step) in enumerate(self.todo[warp][:_WINDOW]):
            looks = step.kind in ("wait", "there")
            if not step.lanes & blocked and looks == waits and (not looks or self._open(step)):
                return at
            blocked |= step.lanes
            if blocked == 0xFFFF_FFFF:
                return None
        return None

    def _open(self, step: Step) -> bool:
        if step.kind == "there":
            return self.bars[step.places[0]][0] > step.amount
        barrier = self.barriers.get(step.places[0])
        return barrier is not None and barrier.lets_pass(step.amount)

    def _come(self, step: Step) -> int:
        """Threads come to a CTA barrier: the number of its round."""
        bar = self.bars.setdefault(step.places[0], [0, 0])
        this, bar[1] = bar[0], bar[1] + 32
        if bar[1] >= step.amount:
            bar[:] = this + 1, 0
        return this

    def _signal(self, step: Step) -> None:
        for place in step.places:
            barrier = self.barriers.get(place)
            if barrier is None:
                continue
            if step.kind == "load":
                barrier.signal(0, delivered=step.amount)
            else:
                barrier.signal(1 if step.kind == "commit" else step.amount, announced=step.more)


def by_warp(steps: list[Step]) -> Order:
    order: Order = {}
    for number, step in enumerate(steps):
        order.setdefault(step.warp, []).append((number, step))
    return order
