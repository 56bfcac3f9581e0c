"""Runs all splits in one call of the main loop, if there are no observers and completions have a fixed order.

The splits run one after the other, until each needs something that only Python can do. Instructions that just
issue work to another unit of the chip do not stop a split: the main loop stores their operands, and
`hand_over` passes them to the unit. The main loop does the latter with observers, too.
"""

from __future__ import annotations

import numpy as np

from ptxsim.jit import bytecode
from ptxsim.jit.host import address_in_host
from ptxsim.machine.cluster_view import Cluster

POLLS = 20  # consecutive unit instructions without an effect that end a turn
FEW_POLLS = 10  # of them, after which splits no longer wait for more warps where instructions gather
POLL_WORK = 2000  # cost of one such instruction, in instructions of the main loop


class BatchScheduler:
    """The batch of one cluster, in arrays that the main loop shares."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.members = np.zeros((2, cluster.warps * 32), np.int64)  # BATCH_LIST, BATCH_STATE
        self.issued = np.zeros((bytecode.ISSUE_ROOM, bytecode.ISSUE_COLUMNS), np.uint64)
        self.width = bytecode.ISSUE_VALUES + max(map(len, cluster.program.issued_slots), default=0)
        control = cluster.control
        control[bytecode.BATCH_PTR] = address_in_host(self.members)
        control[bytecode.ISSUED_PTR] = address_in_host(self.issued)

    def start(self) -> None:
        """Resets the state for a new cluster."""
        self.paused: set[int] = set()  # splits that have used up a turn
        self.polls: dict[int, int] = {}  # split -> consecutive unit instructions without an effect
        self.stopped: int | None = None  # if the main loop already ran this batch: why it stopped

    def run(self) -> int:
        """Runs each queued split until it needs Python; returns how many splits now get a turn."""
        cluster, control = self.cluster, self.cluster.control
        loop, words = cluster.loop, cluster.words
        if self.stopped is None:
            self.members[bytecode.BATCH_STATE] = bytecode.ABSENT
            control[[bytecode.BATCH, bytecode.NEW_COUNT, bytecode.BUDGET]] = 0, 0, bytecode.TURN
        while True:
            reason, self.stopped = self.stopped, None
            if reason is None:
                self._admit()
                if not control[bytecode.BATCH]:
                    break
                reason = loop(words)
            issued = control[bytecode.ISSUED]
            split = cluster.splits[control[bytecode.SPLIT]]
            cluster.settle(split)
            cluster.serve(reason, split)
            if reason == bytecode.REASON_STANDS and not issued and not cluster.queue:
                break
            if cluster.watchdog.exhausted():
                break
        return self._dismiss()

    def _admit(self) -> None:
        """Moves all queued splits into the batch."""
        (batch, state), control = self.members, self.cluster.control
        for g in self.cluster.queue:
            if state[g] == bytecode.ABSENT:
                batch[control[bytecode.BATCH]] = g
                control[bytecode.BATCH] += 1
            state[g] = bytecode.MOVING
        self.cluster.queue.clear()

    def _dismiss(self) -> int:
        """Puts the splits that can still run back into the queue; returns how many of them get a turn."""
        (batch, state), control = self.members, self.cluster.control
        members = batch[: control[bytecode.BATCH]]
        standing = members[state[members] != bytecode.GONE].tolist()
        self.paused = set(members[state[members] == bytecode.PAUSED].tolist())
        if control[bytecode.FAST_DONE]:
            self.cluster.watchdog.happened()
        control[bytecode.BATCH] = control[bytecode.FAST_DONE] = 0
        alone, together = self._parted(standing)
        self.cluster.queue.extend(alone + together)
        return len(alone) or len(together)

    def _parted(self, standing: list[int]) -> tuple[list[int], list[int]]:
        """(splits that get a turn now, splits at an instruction that gathers more warps). The latter get
        their turn when no others are left, or when another split polls.
        """
        cluster, rows = self.cluster, self.cluster.split_table[:, bytecode.SP_PC]
        gathers, polls = cluster.program.gathers, self.polls.get
        together = [g for g in standing if gathers[rows.item(g)]]
        alone = [g for g in standing if not gathers[rows.item(g)]]
        if self.paused or any(polls(g, 0) > FEW_POLLS for g in alone):
            return standing, []
        return alone, together

    def had_turn(self, g: int) -> bool:
        """Whether a split has just used up its turn; the answer is True only once per turn."""
        if g not in self.paused:
            return False
        self.paused.remove(g)
        return True

    def turn(self, g: int) -> int | None:
        """Runs one unit instruction, at which a split of the batch stands; the batch then continues.

        Returns the work without an effect, in instructions; None while the split's turn is not over.
        """
        cluster, split, before = self.cluster, self.cluster.splits[g], self.cluster.effects
        row, mask = cluster.split_table[g, : bytecode.SP_MASK + 1].tolist()
        guard = cluster.program.guards[row]
        cluster.control[bytecode.EXECUTED] += 1
        done = cluster.unit(split, row, mask & cluster.predicate(split, guard) if guard else mask)
        self.polls[g] = polls = self.polls.get(g, 0) + 1 if done and cluster.effects == before else 0
        if done:
            cluster.queue.append(g)
        if 0 < polls <= POLLS:
            return None
        self.polls[g] = 0
        return polls * POLL_WORK

    def _plain_loads(self, end: int) -> bool:
        """Whether all unreported log rows before `end` are loads that order nothing. Observers may hear of an
        MMA before them: it writes no memory that they read, and ends no epoch that matters to them.
        """
        rows = self.cluster.access_log[self.cluster.told : end, bytecode.LOG_ROW].tolist()
        return all(map(self.cluster.program.plain_loads.__contains__, rows))

    def hand_over(self) -> None:
        """Passes the instructions that the main loop has issued to their units, in order. Observers first
        hear of the accesses that preceded each of them.
        """
        cluster, program = self.cluster, self.cluster.program
        heard, slots = cluster.bus.heard, program.issued_slots
        count = cluster.control.item(bytecode.ISSUED)
        cluster.control[bytecode.ISSUED] = 0
        for row, g, mask, logged, *values in self.issued[:count, : self.width].tolist():
            if heard and logged > cluster.told and not (program.is_mma[row] and self._plain_loads(logged)):
                cluster.tell_log(logged)
            split = cluster.splits[g]
            split.row, split.mask = row, mask
            split.issued = dict(zip(slots[row], values, strict=False))
            program.handlers[row](cluster, split, program.args[row])
            split.issued = None
