"""One cluster of CTAs while it runs: registers, memory, barriers, and the scheduler of its warps.

A split is a set of lanes of one warp that are at the same instruction; it is the unit of scheduling. The main
loop (loop_template.py) runs a split up to its next unit instruction, whose handler then runs here.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from ptxsim.events.bus import SILENT, Bus, Silent
from ptxsim.isa.operands import UNSET
from ptxsim.jit import bytecode
from ptxsim.jit.codegen import cold_address
from ptxsim.jit.host import address_in_host
from ptxsim.machine.async_queue import Engine
from ptxsim.machine.batch_scheduler import POLL_WORK, POLLS, BatchScheduler
from ptxsim.machine.choices import choices
from ptxsim.machine.control_words import describe_arrays, describe_launch
from ptxsim.machine.exits import take_leave
from ptxsim.machine.forward_progress import held_back, release_from_sleepers, time_out
from ptxsim.machine.late_operations import LateOperations, Order, base_of
from ptxsim.machine.launch_view import Launch
from ptxsim.machine.left_behind import take_over
from ptxsim.machine.local_log import without_local
from ptxsim.machine.map_table import MapTable
from ptxsim.machine.mbarrier_table import MBarriers
from ptxsim.machine.register_files import RegisterFiles
from ptxsim.machine.split import BLOCK, PARK, Split, Splits, Wait
from ptxsim.machine.tensor_memory import TensorMemory
from ptxsim.machine.watchdog import Watchdog
from ptxsim.report.findings import Reporter

LOG_CAPACITY = 1 << 16


class Cluster(RegisterFiles):
    def __init__(
        self, launch: Launch, order: Order, reporter: Reporter, bus: Bus | Silent = SILENT, explain=None
    ):
        """bus: the observers; explain(cluster, reporter) -> Finding: called when all threads are stuck."""
        self.program = launch.program
        self.ctas = launch.ctas_per_cluster
        self.threads_per_cta = launch.threads
        self.warps_per_cta = launch.warps_per_cta
        self.warps = self.ctas * self.warps_per_cta
        self.loop = launch.loop
        self._allocate(launch.shared_window, bus.heard)
        self.splits, self.batch = Splits(self), BatchScheduler(self)
        describe_arrays(self)
        self.described = self.control.copy()
        self.fixed: tuple = ()  # what `Launch.fill_fixed` last filled in; see there
        self.belong_to(launch, order, reporter, bus, explain)

    def belong_to(self, launch: Launch, order: Order, reporter: Reporter, bus: Bus | Silent, explain) -> None:
        """Prepares for clusters of another launch, which must have the same kernel and shape."""
        self.launch, self.reporter, self.bus, self.explain = launch, reporter, bus, explain
        self.late = LateOperations(order)
        self.order = base_of(order)
        self.dry = False  # tensor cores and TMA move no data, for timing/
        self.choices = choices(launch, self.order)
        self.told = 0  # rows of the access log that observers have been given
        self.control[:] = self.described
        describe_launch(self)
        self.map_memory()
        self.maps.start(launch)
        for memory in self.tmem:
            memory.neighbours = self.choices.neighbours
        launch.fill_fixed(self)
        self.tensor_operations = self.tma_bytes = 0

    def _allocate(self, window: int, heard: bool) -> None:
        """Allocates all arrays. window: bytes of shared memory of a CTA."""
        slots = self.program.slots
        self.registers = np.zeros((self.warps, max(slots.count, 1), 32), np.uint64)
        self.fresh = np.zeros((slots.register_slots, 1), np.uint64)  # initial values of the registers
        for slot, bits in slots.unset.items():
            self.fresh[slot] = UNSET & (1 << bits) - 1
        self.predicates = np.zeros((self.warps, len(slots.predicates) + 1), np.int64)
        self.living = np.zeros(self.warps, np.int64)
        self.split_table = np.zeros((self.warps * 32, bytecode.SPLIT_COLUMNS), np.int64)
        self.group_table = np.zeros((self.warps * 32, bytecode.GROUP_COLUMNS), np.int64)
        self.cta_table = np.zeros((self.ctas, bytecode.CT_COLUMNS), np.int64)
        self.access_log = np.zeros((LOG_CAPACITY if heard else 32, bytecode.LOG_COLUMNS), np.int64)
        self.control = np.zeros(bytecode.CONTROL_WORDS, np.int64)
        self.words = address_in_host(self.control)
        self.mbarriers, self.maps = MBarriers(self.control), MapTable(self.control)
        self.shared = np.zeros((self.ctas, window), np.uint8)
        self.shared_chunks = [window.view(np.complex128) for window in self.shared]  # units of 16 bytes
        self.tmem = [TensorMemory() for _ in range(self.ctas * self.program.uses_tmem)]
        self.tmem_table = np.array([memory.addresses() for memory in self.tmem], np.int64)
        own = 2, self.warps * 32, max(self.program.local_bytes, 1)
        self.local, self.local_written = np.zeros(own, np.uint8)
        self.cta_table[:] = [(rank, address_in_host(window)) for rank, window in enumerate(self.shared)]

    def map_memory(self) -> None:
        """Gives the main loop the current host addresses of global memory."""
        self.segment_table = self.launch.memory.table()
        self.control[bytecode.SEG_PTR] = address_in_host(self.segment_table)
        self.control[bytecode.SEGMENTS] = len(self.segment_table)
        self.control[bytecode.LAST_SEGMENT] = 0

    def start(self, index: int) -> None:
        """Resets everything for cluster number `index` of the grid."""
        self.begin(index)
        self.clear()
        self.bus.start(self)

    def begin(self, index: int) -> None:
        """Resets the state that Python keeps, for cluster number `index` of the grid."""
        self.index = self.reporter.cluster = index
        self.cta_ids = self.launch.cluster_cta_ids(index)
        self.mbarriers.start()
        for memory in self.tmem:
            memory.clear()
        self.engine = Engine(self.order)
        self.batched = not self.bus.heard and self.engine.random is None
        self.batch.start()
        self.late.start()
        self.maps.begin()
        self.unit_state: dict[Any, Any] = {}  # bar, bulk groups, ...: state that units keep per cluster
        self.waiting: dict[tuple, list[int]] = {}
        self.waits: dict[int, Wait] = {}
        self.alive = [self.lanes_at_start(w) for w in range(self.warps)]
        self.queue = deque(w * 32 for w in range(self.warps) if self.alive[w])
        self.apart: set[int] = set()  # warps of which some lanes have continued without others
        self.watchdog = Watchdog(self, self.launch.max_instructions)
        self.ran = 0  # split that had the latest turn
        self.effects = 0  # number of changes that could let a polling split continue
        self.published = 0  # of them, atomics on global memory
        self.timeouts, self.stuck = 0, False  # the first: effects + 1 at the last standstill

    def clear(self) -> None:
        """Sets the arrays of compiled code to their initial state, as `run_each` of loop_series.py does."""
        self.registers[:, : len(self.fresh)] = self.fresh
        self.predicates[:] = 0
        self.predicates[:, 0] = 0xFFFF_FFFF
        self.split_table[:] = 0
        self.split_table[:, bytecode.SP_GROUP] = -1
        self.group_table[:] = 0
        self.shared[:] = 0xFF  # NaN in every floating type, so that reads of unwritten bytes show
        self.local[:], self.local_written[:] = 0xFF, 0
        self.launch.fill_changing(self)
        self.control[[bytecode.LEFT, bytecode.COPIES]] = 0
        self.control[bytecode.EAGER] = self.engine.eager
        self.living[:] = self.alive
        first = self.split_table[::32]  # of each warp
        first[:, bytecode.SP_STATE], first[:, bytecode.SP_MASK] = bytecode.RUNNABLE, self.alive
        first[:, bytecode.SP_WARP] = range(self.warps)

    def forget_counts(self) -> None:
        """Resets counts and findings, in a process that runs part of a launch."""
        self.count_from(0, 0, 0)
        self.reporter.by_identity, self.reporter.appeared, self.reporter.printed = {}, {}, []

    def let_go(self) -> None:
        """Drops all references to the launch; `belong_to` prepares the cluster for another one."""
        del self.launch, self.reporter, self.segment_table, self.watchdog, self.engine
        self.maps.let_go()
        self.unit_state, self.waiting, self.waits = {}, {}, {}

    def counts(self) -> tuple[int, int, int]:
        """Warp instructions, TMA bytes and tensor operations so far."""
        return self.executed(), self.tma_bytes, self.tensor_operations

    def count_from(self, executed: int, tma_bytes: int, tensor_operations: int) -> None:
        self.control[bytecode.EXECUTED] = executed
        self.tma_bytes, self.tensor_operations = tma_bytes, tensor_operations

    def lanes_at_start(self, warp: int) -> int:
        """Mask of the lanes that a warp starts with: all 32, unless it is a partial last warp."""
        return (1 << min(32, self.threads_per_cta - warp % self.warps_per_cta * 32)) - 1

    # ---- sleeping and waking ----

    def wait(self, split: Split, wait: Wait, park: bool = False) -> str:
        """Puts the split to sleep until wake(wait.key); with `park`, it resumes after the instruction."""
        self.waiting.setdefault(wait.key, []).append(split.index)
        self.waits[split.index] = wait
        return PARK if park else BLOCK

    def wake(self, key: tuple) -> None:
        """Makes every split that waits for `key` runnable."""
        self.effects += 1
        for g in self.waiting.pop(key, ()):
            self.waits.pop(g, None)
            self.split_table[g, bytecode.SP_STATE] = bytecode.RUNNABLE
            self.queue.append(g)

    # ---- running ----

    def run(self, alone: bool = True) -> bool:
        """Runs all threads to their end, or until nothing can make progress. False: other clusters have a
        turn, as threads poll (with `alone`, that is a deadlock) or wait until others have seen what they did.
        """
        self.watchdog.begin(alone)
        batch = standing = 0  # splits that ran as one batch, and how many of them still have a turn
        while True:
            if not standing and self.batched:
                batch = standing = self.batch.run()
                if self.watchdog.exhausted():
                    break
            if not self.queue:
                if self.engine.complete_one() or self.late.release(self):
                    continue
                if self.late.held:
                    return False
                if self.waits and (time_out(self) or release_from_sleepers(self)):
                    continue
                break
            before, self.ran = self.effects, self._next()
            spun, standing = self._turn(self.ran, batch > 1), max(0, standing - 1)
            if self.engine.eager:
                self.engine.flush()
            elif self.engine.random and self.engine.random.random() < 0.5:
                self.engine.complete_one()
            work = 0 if spun is not None and self.effects != before else spun
            self.late.had_turn(self.ran, work)
            if not self.watchdog.gets_on(self.ran, work):
                if self.watchdog.others_may_help():
                    return False
                break
        if self.queue or self.waits:
            self.watchdog.give_up()
        self.engine.flush()
        self.bus.finish(self)
        return True

    def _next(self) -> int:
        if self.engine.random and len(self.queue) > 1:
            self.queue.rotate(self.engine.random.randrange(len(self.queue)))
        return self.late.first(self.queue) if self.late.ranks else self.queue.popleft()

    def _turn(self, g: int, together: bool) -> int | None:
        """Runs split g's turn, alone or in a batch: the work without an effect, or None if it is not over."""
        if self.batch.had_turn(g):
            self.queue.append(g)
            return bytecode.TURN
        return self.batch.turn(g) if together else self._step(g)

    def _step(self, g: int) -> int:
        """Runs split g, and the splits that follow it in compiled code (`ran` is the last of them). Returns 0
        when one sleeps or ends; when its turn is used up, the work done in instructions.
        """
        control, split = self.control, self.splits[g]
        control[bytecode.SPLIT] = g
        control[bytecode.BUDGET] = (
            self.watchdog.polling.budget(g, bytecode.TURN) if self.bus.heard else bytecode.TURN
        )
        loop, words, polls, units, begun = self.loop, self.words, 0, 0, self.executed()
        while polls <= POLLS and units < self.late.most_units:
            control[bytecode.NEW_COUNT], before = 0, self.effects
            reason = loop(words)
            if control.item(bytecode.FOLLOWED):
                g, split = self._followed()
            self.settle(split)
            if reason == bytecode.REASON_UNIT:
                row = self.split_table.item(g, bytecode.SP_PC)
                if self.batched and self.queue and self.program.gathers[row]:
                    control[bytecode.EXECUTED] -= 1  # it is counted when it is done
                    break
                if not self.unit(split, row, control.item(bytecode.UNIT_MASK)):
                    return 0
                polls, units = polls + 1 if self.effects == before else 0, units + 1
            elif self.serve(reason, split):
                polls += reason == bytecode.REASON_FAULT
            elif reason in (bytecode.REASON_FAULT, bytecode.REASON_BUDGET):  # the first: its log is full
                self.queue.append(g)
                return bytecode.TURN if reason == bytecode.REASON_FAULT else self.executed() - begun
            else:
                return 0
        self.queue.append(g)
        self.watchdog.long_turn(units)
        return polls * POLL_WORK

    def _followed(self) -> tuple[int, Split]:
        """The split that compiled code ran last in a turn. Splits before it have joined: an effect."""
        self.control[bytecode.FOLLOWED] = 0
        self.ran = g = self.control.item(bytecode.SPLIT)
        self.watchdog.happened()
        return g, self.splits[g]

    def serve(self, reason: int, split: Split) -> bool:
        """Does what the main loop needs besides unit instructions; whether the split continues at once."""
        if reason == bytecode.REASON_COLD:
            self._cold(split.index)
        elif reason == bytecode.REASON_FAULT and self.control[bytecode.FAULTS]:
            self._fault(split)
        else:
            if reason == bytecode.REASON_BAD_INDEX:
                self._bad_index(split)
            return False
        return True

    def settle(self, split: Split) -> None:
        """Processes everything that the main loop has left to Python, besides the reason why it stopped."""
        word = self.control.item
        if word(bytecode.TENSOR_OPERATIONS) or word(bytecode.CHANGED):
            take_over(self)
        if word(bytecode.ISSUED):
            self.batch.hand_over()
        if word(bytecode.NEW_COUNT):
            self._adopt()
        if parts := word(bytecode.PARTS):
            self._tell_parts(parts)
        if logged := word(bytecode.LOG_USED):
            self.tell_log(logged)
            self.control[bytecode.LOG_USED] = self.told = 0
        if word(bytecode.EXITED):
            self._exited(split)
        elif word(bytecode.LEFT):
            take_leave(self)

    def unit(self, split: Split, row: int, mask: int) -> bool:
        """Runs the unit instruction at `row` for the lanes in `mask`; False if the split must sleep."""
        g, outcome = split.index, BLOCK
        split.row, split.mask = row, mask
        if split.mask == self.alive[split.warp] or not held_back(self, split):
            if self.late.on and self.late.takes(self, split):
                return False
            outcome = self.program.handlers[row](self, split, self.program.args[row])
        if outcome is not BLOCK:
            self.split_table[g, bytecode.SP_PC] = row + 1
        if outcome is None:
            return True
        if self.waits.get(g) is not None:
            self.split_table[g, bytecode.SP_STATE] = bytecode.BLOCKED
        return False

    def _bad_index(self, split: Split) -> None:
        split.row = int(self.split_table[split.index, bytecode.SP_PC])
        self.reporter.add("illegal", "error", "brx.idx: index outside its table", split=split)
        self.split_table[split.index, bytecode.SP_STATE] = bytecode.FREE
        self.control[bytecode.EXITED] = split.full_mask
        self._exited(split)

    def _adopt(self) -> None:
        """Queues splits that a branch created."""
        first, count = bytecode.NEW_FIRST, int(self.control[bytecode.NEW_COUNT])
        for g in dict.fromkeys(self.control[first : first + count].tolist()):
            if self.split_table[g, bytecode.SP_STATE] == bytecode.RUNNABLE and g not in self.queue:
                self.queue.append(g)

    def _cold(self, g: int) -> None:
        """Compiles the operation at which a split is; from now on the main loop calls the compiled code."""
        code = self.program.code
        number = int(code[int(self.split_table[g, bytecode.SP_PC]), bytecode.IMM])
        same = (code[:, bytecode.OP] == bytecode.COLD) & (code[:, bytecode.IMM] == number)
        code[same, bytecode.IMM] = cold_address(self.program.cold[number])
        code[same, bytecode.OP] = bytecode.CALL
        self.control[bytecode.EXECUTED] -= 1  # it is counted when it is done

    def tell_log(self, end: int) -> None:
        """Gives observers the accesses in the log before row `end` that they have not seen yet."""
        if end > self.told:
            self.bus.accesses(self, without_local(self, self.access_log[self.told : end]))
            self.told = end

    def _tell_parts(self, count: int) -> None:
        """Gives observers the accesses of splits that another one has followed, separately for each split."""
        for end in self.control[bytecode.PARTS_FIRST :][:count].tolist():
            self.tell_log(end)
        self.control[bytecode.PARTS] = 0

    def _fault(self, split: Split) -> None:
        """Reports an illegal load or store; the loop has skipped the access."""
        control = self.control
        split.row = int(self.split_table[split.index, bytecode.SP_PC]) - 1
        self.reporter.fault(
            split.at(1 << int(control[bytecode.FAULT_LANE])),
            int(control[bytecode.FIRST_KIND]),
            int(control[bytecode.FAULT_ADDRESS]),
            int(control[bytecode.FAULTS]),
            split.mask.bit_count(),
        )
        control[bytecode.FAULTS] = 0

    def _exited(self, split: Split) -> None:
        """Removes the lanes of a split that have left the kernel."""
        self.living[split.warp] &= ~self.control.item(bytecode.EXITED)
        self.control[bytecode.EXITED] = 0
        take_leave(self)

    def executed(self) -> int:
        """Warp instructions that have run so far."""
        return self.control.item(bytecode.EXECUTED)

    def logged(self) -> int:
        """Rows of the access log that the main loop has filled; observers have seen the first `told`."""
        return int(self.control[bytecode.LOG_USED])

    def cta_alive(self, cta: int) -> int:
        """Threads of a CTA that have not exited, counting each warp as 32 threads as CTA barriers do (PTX ISA
        9.7.13.1).
        """
        first = cta * self.warps_per_cta
        return 32 * sum(m != 0 for m in self.alive[first : first + self.warps_per_cta])
