"""Accesses of the tensor cores: tcgen05.mma, tcgen05.ld / st and wgmma."""

from __future__ import annotations

from collections import deque

import numpy as np

from ptxsim.checks.race.async_work import AsyncWork, Issued, runs_of
from ptxsim.checks.race.proxy_fences import SHARED
from ptxsim.checks.race.shadow_bytes import SERIAL
from ptxsim.checks.race.shadow_tmem import enter, rectangle, touch_cells
from ptxsim.checks.race.vector_clocks import joined, least
from ptxsim.isa.address_map import RANK_SHIFT, SHARED_BASE
from ptxsim.isa.number_formats import DECODERS
from ptxsim.machine.tensor_memory import COLUMNS, LANES, split_address
from ptxsim.units.tcgen05_mma import operand_chunks, operand_lanes, result_blocks

MMA_K_BYTES = 32
_NOTHING = np.zeros(0, np.int32)


class TensorCores(AsyncWork):
    """Observer part of Races: tensor cores and tensor memory."""

    # ---- tensor core ----

    def mma_issue(self, cluster, split, op) -> None:
        item = self._issue("mma", split)
        item.flags |= SERIAL
        item.queue = self._mma_queue(item.thread)
        agent = self.agent(item.queue)
        agent.count += 1
        item.epoch = agent.count
        self.usable[item.thread, item.queue + 1 - self.threads] = agent.count
        self.mmas[id(op)] = item
        self._remember(item)

    def _mma_queue(self, thread: int) -> int:
        """Two agents in a row: MMAs completed, and MMAs issued (what tcgen05.fence orders)."""
        queue = self.column("mma", thread)
        issued = self.column("issued", thread)
        if len(self.is_mma) <= issued - self.threads:
            self.is_mma = np.pad(self.is_mma, (0, issued + 1 - self.threads))
            self.is_mma[queue - self.threads] = 1
        return queue

    def commit_issue(self, cluster, split) -> Issued:
        item = self.latest = self._issue("commit", split)
        queue = item.queue = self._mma_queue(item.thread)
        count = item.epoch = self.agent(queue).count
        item.clock, item.known = (
            joined(x, np.zeros(n, np.int32))
            for x, n in ((item.clock, queue + 1), (item.known, queue + 1 - self.threads))
        )
        item.clock[queue] = item.known[queue - self.threads] = count
        return item

    def mma_execute(self, cluster, op, ranks: list[int]) -> None:
        item = self.mmas.pop(id(op), None)
        if item is None:
            return
        for rank in ranks:
            for source, which in ((op.a, "a"), (op.b, "b")):
                if isinstance(source, tuple):
                    self._cells(self._a_cells(op, rank), False, item)
                    continue
                found = self._operand(source, op, which, rank)
                if found is not None:
                    self._ranges(SHARED, *found, False, item)
        self._result(op, ranks, item)

    def _result(self, op, ranks: list[int], item: Issued) -> None:
        """D is written. While only MMAs of one thread go to it, in order, the last one is enough."""
        key = (op.shape, op.group, op.lane, op.column, tuple(ranks))
        last = self.open_results.get(key)
        if last is not None and last[0].queue == item.queue:
            last[0] = item
            return
        cells = self._d_cells(key)
        self._cells(cells, True, item)
        first = op.column
        self.open_results[key] = [item, cells, first, first + op.shape.n]

    def _close_results(self, cells: np.ndarray) -> None:
        """Somebody else comes to these cells: enters the last MMA of each result that may overlap."""
        columns = cells % COLUMNS
        low, high = int(columns.min()), int(columns.max())
        for key, (item, known, first, last) in list(self.open_results.items()):
            if first <= high and low < last:
                enter(self.tmem.write, known, item.queue, item.epoch, item.row)
                del self.open_results[key]

    def _operand(self, descriptor: int, op, which: str, rank: int):
        """(starts, size) of the byte ranges of an operand; None for a descriptor that is not legal."""
        shape = op.shape
        rows, mn, fmt = (
            (shape.m, shape.a_mn_major, shape.a_type)
            if which == "a"
            else (shape.n, shape.b_mn_major, shape.b_type)
        )
        key = (descriptor, rows, op.group, mn, fmt, rank)
        if key not in self.operands:
            try:
                chunks = operand_chunks((descriptor,), rows // op.group, DECODERS[fmt].bytes, mn)
                bad = chunks.first < 0 or chunks.last >= self.window
                self.operands[key] = None if bad else runs_of(chunks.index, rank * self.window)
            except ValueError:
                self.operands[key] = None
        return self.operands[key]

    def _d_cells(self, key: tuple) -> np.ndarray:
        if key not in self.cells:
            shape, group, first_lane, first_column, ranks = key
            parts = []
            for rank in ranks:
                for lane, _, rows, tmem_column, _, columns in result_blocks(shape.m, shape.n, group):
                    column, first = first_column + tmem_column, first_lane + lane
                    columns, rows = min(columns, COLUMNS - column), min(rows, LANES - first)
                    if columns > 0 and rows > 0:
                        parts.append(rectangle(rank, first, rows, column, columns))
            self.cells[key] = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        return self.cells[key]

    def _a_cells(self, op, rank: int) -> np.ndarray:
        _, column = split_address(op.a[1])
        lanes, columns = operand_lanes(op), min(MMA_K_BYTES // 4, COLUMNS - column)
        lanes = lanes[lanes < LANES]
        if not len(lanes) or columns <= 0:
            return np.zeros(0, np.int64)
        runs = np.split(lanes, np.flatnonzero(np.diff(lanes) != 1) + 1)
        return np.concatenate([rectangle(rank, int(r[0]), len(r), column, columns) for r in runs])

    def _cells(self, cells: np.ndarray, write: bool, op: Issued, usable: np.ndarray | None = None) -> None:
        if not len(cells):
            return
        if self.open_results:
            self._close_results(cells)
        self.is_mma[0] = op.kind == "mma"
        touch_cells(
            self.tmem.write,
            self.tmem.reads,
            cells,
            write,
            op.queue,
            op.epoch,
            op.row,
            op.clock,
            op.usable if usable is None else usable,
            self.threads,
            self.is_mma,
            self.out,
        )
        self.collect("tmem", op.clock, op)

    # ---- tensor memory as threads see it ----

    def tmem_issue(self, cluster, split, kind: str, registers: tuple) -> None:
        rows = self.rows(split)
        op = Issued(
            kind, split.row, int(rows[0]), least(self.clocks, rows), _NOTHING, least(self.usable, rows)
        )
        op.queue = self.column(kind, split.warp)
        agent = self.agent(op.queue)
        agent.count += 1
        op.epoch = agent.count
        self.tmem_pending.setdefault((kind, split.warp), deque()).append(op)
        self.tmem_latest[kind, split.warp] = op

    def tmem_access(self, cluster, split, cells, write: bool, row: int) -> None:
        op = self.tmem_pending["st" if write else "ld", split.warp].popleft()
        lanes, columns = cells
        key = (row, split.cta, int(lanes.flat[0]), int(columns.flat[0]))
        if key not in self.cells:
            block = (split.cta * (LANES // 16) + lanes // 16) * COLUMNS + columns
            self.cells[key] = np.unique(block.astype(np.int64))
        self._cells(self.cells[key], write, op)

    def tmem_alloc(self, cluster, split, start: int, columns: int, place, group: int) -> None:
        """alloc writes the address to shared memory, as all threads of the warp (it is .sync.aligned)."""
        self.tmem.forget(rectangle(split.cta, 0, LANES, start, columns))
        if place is None:
            return
        row = self.lane_row(split, split.leader)
        address = SHARED_BASE + (place[0] << RANK_SHIFT) + place[1]
        log = np.array([[split.row, split.warp * 32 + split.leader, address, 2 * 4 + 1]], np.int64)
        self.accesses(cluster, log)
        self.acquire(self.rows(split), self.release(row))

    def tmem_free(self, cluster, split, start: int, columns: int, group: int) -> None:
        rows = self.rows(split)
        row = int(rows[0])
        cells = rectangle(split.cta, 0, LANES, start, columns)
        op = Issued("dealloc", split.row, row, least(self.clocks, rows), _NOTHING, _NOTHING)
        op.queue, op.epoch = row, int(self.clocks[row, row])
        op.clock[rows] = self.clocks[rows, rows]
        self._cells(cells, True, op)

    def never_waited(self) -> list[tuple[str, int, Issued]]:
        """(kind, warp, last instruction) of the tcgen05.ld / st that no wait covers."""
        found = []
        for (kind, warp), op in self.tmem_latest.items():
            if self.clocks[warp * 32 // self.lanes, op.queue] < op.epoch:
                found.append((kind, warp, op))
        return found

    # ---- wgmma ----

    def wgmma_issue(self, cluster, split) -> Issued:
        """One warp's share. Its clock is what all lanes know, and what each has done itself."""
        rows = self.rows(split)
        op = Issued("wgmma", split.row, int(rows[0]), self.clocks[rows].min(0), _NOTHING, _NOTHING)
        op.clock[rows] = self.clocks[rows, rows]
        self.clocks[rows, rows] += 1
        op.queue = self.column("wgmma", split.warp)
        agent = self.agent(op.queue)
        agent.count += 1
        op.epoch = agent.count
        return op

    def wgmma_read(self, cluster, token: Issued, rank: int, chunks: np.ndarray) -> None:
        if len(chunks):
            self._ranges(SHARED, *runs_of(chunks, rank * self.window), False, token)

    def wgmma_wait(self, cluster, split, token: Issued) -> None:
        rows = self.rows(split)
        self.clocks[rows, token.queue] = np.maximum(self.clocks[rows, token.queue], token.epoch)
