"""The watchdog of a cluster: after every turn it says whether the cluster still gets anywhere; if not, why.

A cluster stands still where all splits that can run poll (`Polling`), or where it is again as it was before
(`Livelock` in endless.py). Then the watchdog revives it, if it can: asynchronous work completes, try_wait
times out, lanes that stand at a meeting point go on without those that poll. If it cannot, other clusters
must help it, or the launch ends with the finding of `give_up`.
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
    Livelock,
    hopeless,
    memory_of,
    polls,
    report,
    state_of,
)
from ptxsim.machine.forward_progress import release, time_out

FIRST = 1260  # instructions of a checked split's first turn without an effect
IMPATIENT = 200_000  # instructions per split without an effect after which pending work completes
ENDLESS = 200_000_000  # ... after which a run counts as stuck, if no warp is about anything but waiting
HELPED = 4  # times that one and the same state of a cluster that goes round is revived


class Watchdog:
    """What is known about the progress of one cluster. `Cluster.run` is its only owner."""

    def __init__(self, cluster: Cluster, most: int | None):
        """most: warp instructions that the cluster may run, None for far more than any kernel needs."""
        self.cluster = cluster
        self.polling, self.livelock = Polling(), Livelock(cluster, most)
        self.moved = True  # something happened since the cluster was last put aside
        self.goes_round = False
        self.helped: Counter[int] = Counter()  # states that came back -> how often they were revived

    def allow(self, most: int) -> None:
        """The cluster may run so many warp instructions, if no fewer are set."""
        self.livelock.most = min(self.livelock.most, most)

    def begin(self, alone: bool) -> None:
        """The cluster runs, or runs again. alone: nothing outside of it can help."""
        self.alone = alone
        self._look_from(START if alone else START_TOGETHER)

    def _look_from(self, turns: int) -> None:
        self.polling.clear()
        self.goes_round = False
        self.livelock.watch(turns)

    def happened(self) -> None:
        """Something that others may have waited for."""
        self.moved = True
        if self.polling.states:
            self.polling.clear()

    def gets_on(self, g: int, work: int | None) -> bool:
        """After a turn of split g: whether there is a point in going on.

        work: its instructions without an effect; 0: it had one, or was cut short; None: it is not over.
        """
        if work:
            self.polling.turn(self.cluster, g, work)
        elif work is not None:
            self.happened()
        return not self._stands_still(g) or self._revive()

    def _stands_still(self, g: int) -> bool:
        polling, queue = self.polling, self.cluster.queue
        if polling.work and polling.stuck(queue):
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
            polling.patience *= 2  # a long loop over what nobody writes: products in registers, prints
            return False
        return self.exhausted()

    def _revive(self) -> bool:
        """Lets a pending piece of work complete, a wait time out, or lanes go on; False if nothing is left.

        A loop that comes round to the same state each time, whatever is let go, is not helped for ever.
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
        """Whether the cluster did more than any kernel that ends."""
        return self.livelock.given_up(self.cluster)

    def others_may_help(self) -> bool:
        return not self.alone and not self.exhausted()

    def give_up(self) -> None:
        """Writes the finding that ends the launch: a loop that has no end, or a deadlock."""
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
    """Splits that used up a turn in a state they had before, without any effect in between."""

    def __init__(self):
        self.clear()

    def clear(self) -> None:
        self.states: dict[int, set[int]] = {}  # split -> digests of its states at the ends of its turns
        self.repeating: set[int] = set()  # splits
        self.work, self.patience = 0, IMPATIENT  # instructions without an effect, and how many are borne

    def turn(self, cluster: Cluster, g: int, work: int) -> None:
        self.work += work
        known, state = self.states.setdefault(g, set()), digest(cluster, g)
        if state in known:
            self.repeating.add(g)
        else:
            known.add(state)
            self.repeating.clear()

    def budget(self, g: int, most: int) -> int:
        """Instructions of the next turn where each access is checked: few at first, for cheap polls."""
        return min(most, FIRST << len(self.states.get(g, ())))

    def stuck(self, queue) -> bool:
        """Whether no split that can run will get anywhere by itself; asked after work without an effect."""
        return all(g in self.repeating for g in queue)

    def impatient(self, queue) -> bool:
        """Whether splits ran for long without an effect: polls that count or read a clock never repeat."""
        return self.work > self.patience * max(1, len(queue))


def digest(cluster: Cluster, g: int) -> int:
    """A number for the state of a split: where it stands, its lanes and their registers."""
    w, mask = int(cluster.split_table[g, bytecode.SP_WARP]), int(cluster.split_table[g, bytecode.SP_MASK])
    lanes = np.flatnonzero((mask >> np.arange(32)) & 1)
    state = zlib.crc32(np.ascontiguousarray(cluster.registers[w][:, lanes]).data)
    state = zlib.crc32(cluster.predicates[w] & mask, state)
    return hash((state, int(cluster.split_table[g, bytecode.SP_PC]), mask))
