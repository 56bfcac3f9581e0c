"""The watchdog of a cluster: decides after every turn whether the cluster still makes progress; if not, why.

A cluster makes no progress if all splits that can run poll (`Polling`), or if it is in a state that it was in
before (`Livelock` in endless.py). The watchdog then tries to revive it: asynchronous work completes, try_wait
times out, lanes at a reconvergence point continue without lanes that poll. If nothing is left to try, other
clusters must help this one, or the launch ends with the finding of `give_up`.
"""

from __future__ import annotations

import zlib
from collections import Counter

import numpy as np

from ptxsim.jit import bytecode
from ptxsim.machine.cluster_view import Cluster
from ptxsim.machine.endless import (
    START,
    START_TOGETHER,
    UNITS,
    Livelock,
    hopeless,
    memory_of,
    polls,
    report,
    state_of,
)
from ptxsim.machine.forward_progress import release, time_out
from ptxsim.machine.split import lane_list

FIRST = 1260  # instructions of a checked split's first turn without an effect
IMPATIENT = 200_000  # instructions per split without an effect after which pending work completes
ENDLESS = 200_000_000  # ... after which a run counts as stuck, if all warps are only waiting
HELPED = 4  # how often the same state of a cluster that loops is revived


class Watchdog:
    """What is known about the progress of one cluster. `Cluster.run` is its only owner."""

    def __init__(self, cluster: Cluster, most: int | None):
        """most: limit of warp instructions for the cluster; None: far more than any kernel needs."""
        self.cluster = cluster
        self.polling, self.livelock = Polling(), Livelock(cluster, most)
        self.moved = True  # something has happened since the cluster was last suspended
        self.goes_round = False  # the cluster loops through the same states
        self.helped: Counter[int] = Counter()  # states that recurred -> how often they were revived

    def allow(self, most: int) -> None:
        """Lowers the limit of warp instructions to `most`, unless it is lower already."""
        self.livelock.most = min(self.livelock.most, most)

    def begin(self, alone: bool) -> None:
        """Called when the cluster starts or resumes. alone: nothing outside of the cluster can help it."""
        self.alone = alone
        self._look_from(START if alone else START_TOGETHER)

    def _look_from(self, turns: int) -> None:
        self.polling.clear()
        self.goes_round = False
        self.livelock.watch(turns)

    def happened(self) -> None:
        """Notes that something has happened for which others may have waited."""
        self.moved = True
        if self.polling.states:
            self.polling.clear()

    def long_turn(self, units: int) -> None:
        """Notes a turn with so many unit instructions, which counts as several: they are slow."""
        self.livelock.turns += units // UNITS

    def gets_on(self, g: int, work: int | None) -> bool:
        """After a turn of split g: whether there is a point in continuing.

        work: the turn's instructions without an effect; 0: it had an effect, or was cut short; None: it is
        not over.
        """
        if work:
            self.polling.turn(self.cluster, g, work)
        elif work is not None:
            self.happened()
        return not self._stands_still(g) or (not self.exhausted() and self._revive())

    def _stands_still(self, g: int) -> bool:
        polling, queue = self.polling, self.cluster.queue
        if polling.work and polling.stuck(queue):
            if not self.alone and not self.moved:  # a store is no event, but what has stored is elsewhere
                self.moved = not self.livelock.same_as_left(self.cluster, memory=False)
            return True
        if self.livelock.came_back(self.cluster, g):
            self.goes_round = True
            if not self.alone:
                self.moved = not self.livelock.same_as_left(self.cluster)
            return True
        if polling.work and polling.impatient(queue) and not self._revive():
            if not self.alone and polls(self.cluster, self.livelock):
                polling.patience = ENDLESS
                return True
            if polling.patience >= ENDLESS and hopeless(self.cluster, self.livelock):
                return True
            polling.patience *= 2  # a long loop without effects: products in registers, prints
            return False
        return self.exhausted()

    def _revive(self) -> bool:
        """Completes a piece of work, times out waits, or lets lanes continue; False if nothing is left to do.

        A loop that always returns to the same state, whatever is done for it, is helped only a few times.
        """
        if self.goes_round:
            state = hash((state_of(self.cluster), memory_of(self.cluster)))
            self.helped[state] += 1
            if self.helped[state] > HELPED:
                return False
        if self.cluster.engine.complete_one():
            self.cluster.effects += 1
            self.moved = True
        elif self.cluster.late.release(self.cluster):
            self.moved = True
        elif not (time_out(self.cluster) or release(self.cluster)):
            return False
        self._look_from(self.livelock.start)
        return True

    def exhausted(self) -> bool:
        """Whether the cluster has done more work than any kernel that ends."""
        return self.livelock.given_up(self.cluster)

    def others_may_help(self) -> bool:
        return not self.alone and not self.exhausted()

    def give_up(self) -> None:
        """Adds the finding that ends the launch: an endless loop or a deadlock."""
        cluster = self.cluster
        cluster.stuck = True
        if cluster.reporter.killed():
            return
        endless = self.goes_round or self.exhausted()
        if cluster.queue and (endless or not (self.polling.repeating or polls(cluster, self.livelock))):
            finding = report(cluster, self.livelock, self.goes_round)
        else:
            finding = cluster.explain(cluster, cluster.reporter)
        cluster.reporter.by_identity[("deadlock", cluster.index)] = finding


class Polling:
    """Detects splits that end a turn in the same state as an earlier one, without any effect in between."""

    def __init__(self):
        self.clear()

    def clear(self) -> None:
        self.states: dict[int, set[int]] = {}  # split -> digests of its states at the ends of its turns
        self.repeating: set[int] = set()  # splits
        self.work, self.patience = 0, IMPATIENT  # instructions without an effect, and their limit per split

    def turn(self, cluster: Cluster, g: int, work: int) -> None:
        self.work += work
        known, state = self.states.setdefault(g, set()), digest(cluster, g)
        if state in known:
            self.repeating.add(g)
        else:
            known.add(state)
            self.repeating.clear()

    def budget(self, g: int, most: int) -> int:
        """Instructions of the next turn if accesses are checked: few at first, so that polling is cheap."""
        return min(most, FIRST << len(self.states.get(g, ())))

    def stuck(self, queue) -> bool:
        """Whether no split that can run will make progress by itself; called after work without an effect."""
        return all(g in self.repeating for g in queue)

    def impatient(self, queue) -> bool:
        """Whether splits have run for long without an effect: polls that count or read a clock never repeat
        a state.
        """
        return self.work > self.patience * max(1, len(queue))


def digest(cluster: Cluster, g: int) -> int:
    """A hash of the state of a split: its row, its lanes and their registers."""
    w, mask = int(cluster.split_table[g, bytecode.SP_WARP]), int(cluster.split_table[g, bytecode.SP_MASK])
    state = zlib.crc32(np.ascontiguousarray(cluster.registers[w][:, lane_list(mask)]).data)
    state = zlib.crc32(cluster.predicates[w] & mask, state)
    return hash((state, int(cluster.split_table[g, bytecode.SP_PC]), mask))
