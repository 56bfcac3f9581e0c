"""Accesses to tensor memory: its history, and tcgen05.ld, st, alloc and dealloc of threads."""

from __future__ import annotations

from collections import deque

import numpy as np

from ptxsim.checks.race.async_work import Issued
from ptxsim.checks.race.clock_rows import most
from ptxsim.checks.race.part import Part
from ptxsim.checks.race.shadow_tmem import TmemShadow, enter, rectangle, touch_cells
from ptxsim.checks.register_uses import (
    never_read,
    rows_before_use,
    used_before_handed_over,
)
from ptxsim.events.records import TmemCells
from ptxsim.events.views import Cluster, Split
from ptxsim.isa.address_map import RANK_SHIFT, SHARED_BASE
from ptxsim.lowering.emit import Program
from ptxsim.machine.register_files import WHOLE_WARP
from ptxsim.machine.tensor_memory import COLUMNS, LANES

_NOTHING = np.zeros(0, np.int32)


class TensorMemoryAccesses(Part):
    """Part of the RaceDetector. The tensor cores report their own accesses through `touch` and `result`."""

    def __init__(self, races):
        super().__init__(races)
        self.cells: dict[TmemCells, np.ndarray] = {}  # -> cells of the shadow

    def start(self, cluster: Cluster) -> None:
        self.shadow = TmemShadow(cluster.ctas)
        self.pending: dict[tuple, deque] = {}
        self.latest: dict[tuple, Issued] = {}
        self.learned: dict[int, dict[int, Issued]] = {}  # warp -> row -> its last load, done at its first use
        self.unread: dict[int, dict[int, Issued]] = {}  # the same; its first use may follow a signal
        self.open_results: dict[tuple, list] = {}
        # [queue - threads]: whether it is a queue of completed MMAs; [0]: whether such a queue acts now
        self.is_mma: np.ndarray = np.zeros(1, np.int8)

    def mma_queue(self, thread: int) -> int:
        """The first of a thread's two adjacent queues: MMAs completed, and MMAs issued (what tcgen05.fence
        orders).
        """
        queue, issued = self.clocks.column("mma", thread), self.clocks.column("issued", thread)
        if len(self.is_mma) <= issued - self.clocks.threads:
            self.is_mma = np.pad(self.is_mma, (0, issued + 1 - self.clocks.threads))
            self.is_mma[queue - self.clocks.threads] = 1
        return queue

    # ---- look-up ----

    def touch(self, cells: np.ndarray, write: bool, op: Issued) -> None:
        """Looks up an access of op to these cells."""
        if not len(cells):
            return
        if self.open_results:
            self._close_results(cells)
        self.is_mma[0] = op.kind == "mma"
        if not write:
            self.shadow.reader(int(cells[0]) // (COLUMNS * LANES // 16), op.queue)
        history = self.races.history
        touch_cells(
            self.shadow.write,
            self.shadow.reads,
            cells,
            write,
            op.queue,
            op.epoch,
            op.row,
            op.clock,
            op.tcgen05_clock,
            self.clocks.threads,
            self.is_mma,
            history.out["tmem"],
        )
        if history.out["tmem"][0, 0]:
            history.collect("tmem", op.clock, op)

    def result(self, key: tuple, cells: np.ndarray, columns: tuple[int, int], op: Issued) -> None:
        """Looks up the write of D. While only MMAs of one thread write D, in order, keeping the last one
        is enough.
        """
        last = self.open_results.get(key)
        if last is not None and last[0].queue == op.queue:
            last[0] = op
            return
        self.touch(cells, True, op)
        self.open_results[key] = [op, cells, *columns]

    def _close_results(self, cells: np.ndarray) -> None:
        """Called when another agent accesses these cells: enters the last MMA of each result that may
        overlap.
        """
        columns = cells % COLUMNS
        low, high = int(columns.min()), int(columns.max())
        for key, (op, known, first, last) in list(self.open_results.items()):
            if first <= high and low < last:
                enter(self.shadow.write, known, op.queue, op.epoch, op.row)
                del self.open_results[key]

    # ---- threads ----

    def tmem_issue(self, cluster: Cluster, split: Split, cells: TmemCells, write: bool) -> None:
        kind, clocks, agents = (
            "st" if write else "ld",
            self.clocks,
            self.clocks.agents(split),
        )  # .sync: all lanes are here
        before, usable = most(clocks.clock, agents), most(clocks.tcgen05_clock, agents)
        if write:
            self._overtake(cluster.program, split, before)
        at = len(clocks.steps)
        op = Issued(kind, split.row, int(agents[0]), before, _NOTHING, usable, at=at)
        op.queue = clocks.column(kind, split.warp)
        queue = clocks.queue(op.queue)
        queue.count += 1
        op.epoch = queue.count
        self.races.transfers.remember(op)
        if kind == "ld" and used_before_handed_over(cluster.program, split.row):
            clocks.learn(agents, op.queue, op.epoch)  # so on every chip; PTX asks for wait::ld
            self.learned.setdefault(split.warp, {})[split.row] = op
        elif kind == "ld" and not never_read(cluster.program, split.row):
            self.unread.setdefault(split.warp, {})[split.row] = op
        self.pending.setdefault((kind, split.warp), deque()).append(op)
        self.latest[kind, split.warp] = op

    def tells(self, cluster: Cluster, split: Split) -> None:
        """Called when a warp is about to signal: loads whose first use it has passed then count as done."""
        unread = self.unread.get(split.warp, {})
        for row, load in sorted(unread.items(), key=lambda item: item[1].epoch):
            if split.row in rows_before_use(cluster.program, row):
                return  # knowing of a later load would imply knowing of this one
            self.clocks.learn(self.clocks.agents_of(split.warp, WHOLE_WARP), load.queue, load.epoch)
            del unread[row]

    def _overtake(self, program: Program, split: Split, before: np.ndarray) -> None:
        """A store that comes before the first use of a load of its warp is not ordered after that load."""
        for row, load in self.learned.get(split.warp, {}).items():
            if split.row in rows_before_use(program, row):
                before[load.queue] = min(before[load.queue], load.epoch - 1)

    def tmem_access(self, cluster: Cluster, split: Split, cells: TmemCells, write: bool) -> None:
        op = self.pending["st" if write else "ld", split.warp].popleft()
        if cells not in self.cells:
            block = (cells.rank * (LANES // 16) + cells.lanes // 16) * COLUMNS + cells.columns
            self.cells[cells] = np.unique(block.astype(np.int64))
        self.touch(self.cells[cells], write, op)

    def tmem_alloc(self, cluster: Cluster, split: Split, start: int, columns: int, place, group: int) -> None:
        """The lanes of the warp meet (it is .sync.aligned); then the address is written to shared memory."""
        self.shadow.forget(rectangle(split.cta, 0, LANES, start, columns))
        self.clocks.meet(self.clocks.agents(split))
        if place is None:
            return
        address = SHARED_BASE + (place[0] << RANK_SHIFT) + place[1]
        log = np.array([[split.row, split.thread, address, 2 * 4 + 1]], np.int64)
        self.races.threads.accesses(cluster, log)
        released = self.clocks.release(self.clocks.agent_of(split.thread))
        self.clocks.acquire(self.clocks.agents(split), released)

    def tmem_free(self, cluster: Cluster, split: Split, start: int, columns: int, group: int) -> None:
        clocks, agents = self.clocks, self.clocks.agents(split)
        clocks.meet(agents)
        agent = int(agents[0])
        usable = np.maximum(most(clocks.thread_clock, agents), most(clocks.tcgen05_clock, agents))
        op = Issued("dealloc", split.row, agent, most(clocks.clock, agents), _NOTHING, usable)
        op.queue, op.epoch = agent, clocks.epoch(agent)
        self.touch(rectangle(split.cta, 0, LANES, start, columns), True, op)

    def never_waited(self) -> list[tuple[str, int, Issued]]:
        """(kind, warp, last instruction) of the tcgen05.ld / st that no wait covers."""
        clock, first = self.clocks.clock, self.clocks.first_agent
        return [
            (kind, warp, op)
            for (kind, warp), op in self.latest.items()
            if clock[first(warp), op.queue] < op.epoch
        ]


class LoadUses(Part):
    """Part of the RaceDetector, before Synchronization: what a warp signals covers the loads whose
    registers it has read (PTX ISA 9.7.16.6.4.5).
    """

    def bar_arrive(self, cluster: Cluster, split: Split, arrival) -> None:
        self.races.tensor_memory.tells(cluster, split)

    def mbarrier_arrive(self, cluster: Cluster, split: Split, arrival) -> None:
        self.races.tensor_memory.tells(cluster, split)

    def cluster_arrive(self, cluster: Cluster, split: Split, relaxed: bool) -> None:
        self.races.tensor_memory.tells(cluster, split)
