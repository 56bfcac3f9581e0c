"""Accesses of the asynchronous units: TMA copies, tcgen05.mma / ld / st, cp.async.

A copy or an MMA comes after all that its issuer knew when it issued it, and nobody comes after it but who
learned of its completion: through the mbarrier it reports to, a commit, or a wait for its group.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from ptxsim import machine_layout as ml
from ptxsim.checks.order import Order, Stamp, _join
from ptxsim.checks.proxies import MEMORY, SHARED
from ptxsim.checks.race_boxes import box_rows
from ptxsim.checks.shadow import ASYNC, SERIAL, STRONG, touch_ranges
from ptxsim.checks.shadow_tmem import enter, rectangle, touch_cells
from ptxsim.formats import DECODERS
from ptxsim.isa.tcgen05_mma import operand_chunks, result_blocks
from ptxsim.tmem import COLUMNS, LANES, split_address

MMA_K_BYTES = 32
_NOTHING = np.zeros(0, np.int32)
REMEMBERED = 64  # transfers per queue whose coordinates a report can still give


@dataclass(eq=False)
class Issued:
    """A piece of asynchronous work between its issue and its completion."""

    kind: str  # "load", "store", "mma", "commit", "cp.async"
    row: int  # of the instruction
    thread: int  # agent that issued it
    clock: np.ndarray
    known: np.ndarray  # of the issuer, for whoever learns of the completion
    usable: np.ndarray
    queue: int = -1  # agent that it acts as
    epoch: int = 0
    flags: int = ASYNC
    tmap: object = None
    start: tuple = ()
    ranks: list = field(default_factory=list)  # CTAs whose shared memory a load fills
    bars: dict = field(default_factory=dict)  # rank -> barrier that its bytes reach
    logs: tuple = ()

    def stamp(self) -> Stamp:
        return Stamp(self.clock, self.known)


class AsyncUnits(Order):
    """Observer half of Races: what hardware units do."""

    def start_units(self) -> None:
        self.mmas: dict[int, Issued] = {}
        self.tmem_pending: dict[tuple, deque] = {}
        self.tmem_latest: dict[tuple, Issued] = {}
        self.transfers: dict[int, deque] = {}  # queue -> (epoch, Issued), for reports
        self.open_results: dict[tuple, list] = {}
        self.is_mma = np.zeros(1, np.int8)
        self.copies = np.zeros(self.threads, np.int64)
        self.initialised: set[tuple] = set()  # (place, agent) known to come after the barrier's init
        self.early: dict[str, object] = {}  # findings: barriers used before their init is visible
        self.commits: dict[int, list] = {}  # queue -> (epoch, barrier places) of its commits

    def _issue(self, kind: str, split, lane: int | None = None) -> Issued:
        thread = self.lane_row(split, split.leader if lane is None else lane)
        known = self.known[thread].copy()
        clock, usable = self.snapshot(thread)
        return Issued(kind, split.row, thread, clock, known, usable)

    def _ranges(self, space: str, starts: np.ndarray, size: int, write: bool, op: Issued) -> None:
        """One look-up of equal ranges for an asynchronous access."""
        at = 0
        while True:
            shadow = self.shared if space == SHARED else self.memory
            at = touch_ranges(
                shadow,
                starts,
                size,
                at,
                write,
                self.now,
                op.queue,
                op.epoch,
                op.row,
                op.flags,
                op.clock,
                self.threads,
                self.others,
                self.fences.epochs[space],
                self.fences.counts[space],
                self.out,
            )
            if at == len(starts):
                break
            self.grow()
        self.collect(space, op.clock, op)

    def _remember(self, op: Issued) -> None:
        self.transfers.setdefault(op.queue, deque(maxlen=REMEMBERED)).append((op.epoch, op))

    def transfer_of(self, queue: int, epoch: int, row: int) -> Issued | None:
        """The transfer behind an epoch of a queue, if it is recent."""
        found = self.transfers.get(queue, ())
        return next((op for at, op in reversed(found) if at == epoch and op.row == row), None)

    # ---- mbarriers ----

    def mbarrier_arrive(self, cluster, split, lane: int, place, relaxed: bool) -> None:
        self._after_init(split, self.lane_row(split, lane), place, "arrive")
        super().mbarrier_arrive(cluster, split, lane, place, relaxed)

    def mbarrier_wait(self, cluster, split, lane: int, place, relaxed: bool) -> None:
        self._after_init(split, self.lane_row(split, lane), place, "wait")
        super().mbarrier_wait(cluster, split, lane, place, relaxed)

    def mbarrier_init(self, cluster, split, lane: int, place) -> None:
        super().mbarrier_init(cluster, split, lane, place)
        self.initialised = {known for known in self.initialised if known[0] != place}

    def _after_init(self, split, row: int, place, what: str) -> None:
        """A barrier may be used by whoever comes after its mbarrier.init."""
        if (place, row) in self.initialised:
            return
        self.initialised.add((place, row))
        signal = self.signals.get(place)
        if signal is None or signal.initialised is None:
            return
        agent, epoch = signal.initialised
        if agent != row and self.clocks[row, agent] < epoch:
            self._used_early(split, place, what)

    def _used_early(self, split, place, what: str) -> None:
        """One finding for all barriers of a name."""
        name = self.reporter.shared_name(place[1])
        known = self.early.get(name.partition("[")[0])
        if known is not None:
            known.count += 1
            return
        self.early[name.partition("[")[0]] = self.reporter.add(
            "mbarrier",
            "error",
            f"{name} of CTA {place[0]} is used ({what}) while nothing orders this after its mbarrier.init",
            "between init and use: fence.mbarrier_init and cta_sync, or cluster_sync for another CTA's "
            "barrier",
            split,
            key=("init-order", place[1]),
            barrier=name,
        )

    def async_arrive(self, cluster, place, token) -> None:
        if token is not None:
            self.signal(place).add(token.stamp())

    # ---- TMA ----

    def tma_issue(self, cluster, split, kind: str, tmap, start, ranks: list[int], offset: int):
        op = self._issue(kind, split)
        op.tmap, op.start, op.ranks = tmap, start, ranks
        if kind == "store":
            op.epoch = len(cluster.unit_state[("bulk", split.thread)])
            if split.instr.mods and "reduce" in split.instr.op + "".join(split.instr.mods):
                op.flags |= STRONG
        self.latest = op
        return op

    def will_signal(self, cluster, split, kind: str, places: list) -> None:
        """The barriers of the load or commit that was just issued."""
        op = self.latest
        for place in places:
            self._after_init(split, op.thread, place, "TMA load" if kind == "load" else "tcgen05.commit")
        if kind == "load":
            op.bars = dict(zip(op.ranks, places, strict=True))
        else:
            self.commits.setdefault(op.queue, []).extend((op.epoch, place) for place in places)

    def async_write(self, cluster, token: Issued, rank: int, offset: int, size: int) -> None:
        self._arrives_on(cluster, token, rank)
        self._ranges(SHARED, np.array([offset + rank * self.window], np.int64), size, True, token)

    def _arrives_on(self, cluster, token: Issued, rank: int) -> None:
        """The agent of a write is the barrier that its bytes reach, in its present phase."""
        place = token.bars[rank]
        barrier = cluster.mbarriers.get(place)
        token.queue, token.epoch = self.column("bytes", place), barrier.phase + 1 if barrier else 1
        self._remember(token)

    def tma_write(self, cluster, token: Issued, rank: int, chunks: np.ndarray) -> None:
        self._arrives_on(cluster, token, rank)
        starts = (chunks.reshape(-1).astype(np.int64) << 4) + rank * self.window
        self._ranges(SHARED, starts, 16, True, token)
        if rank == token.ranks[0]:
            self._global_box(token, token.tmap, token.start, False)

    def tma_read(self, cluster, token: Issued, rank: int, chunks: np.ndarray) -> None:
        if token.kind == "load":  # a copy between CTAs is done, source and all, when its bytes are announced
            self._arrives_on(cluster, token, token.ranks[0])
        else:
            token.queue = self.column("source", token.thread)
            self._remember(token)
        starts = (chunks.reshape(-1).astype(np.int64) << 4) + rank * self.window
        self._ranges(SHARED, starts, 16, False, token)

    def tma_global(self, cluster, token: Issued, tmap, start) -> None:
        token.queue = self.column("result", token.thread)
        self._remember(token)
        self._global_box(token, tmap, start, True)

    def _global_box(self, op: Issued, tmap, start, write: bool) -> None:
        starts, size = box_rows(tmap, start)
        if size:
            self._ranges(MEMORY, starts + self.positions[tmap.segment] + tmap.byte_offset, size, write, op)

    def bulk_wait(self, cluster, split, allowed: int, reading: bool) -> None:
        for lane in split.lanes:
            groups = cluster.unit_state.get(("bulk", split.warp * 32 + int(lane)), [])
            done = sum(g.committed for g in groups) - allowed
            row = self.lane_row(split, int(lane))
            for kind in ("source",) if reading else ("source", "result"):
                column = self.columns.get((kind, row))
                if column is not None and done > self.clocks[row, column]:
                    self.clocks[row, column] = done

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
            _join(x, np.zeros(n, np.int32))
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
                self.operands[key] = None if bad else _runs(chunks.index, rank * self.window)
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
        lane, column = split_address(op.a[1])
        rows = min(op.shape.m // op.group, LANES - lane)
        columns = min(MMA_K_BYTES // 4, COLUMNS - column)
        return (
            rectangle(rank, lane, rows, column, columns)
            if rows > 0 and columns > 0
            else np.zeros(0, np.int64)
        )

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
            kind, split.row, int(rows[0]), self.clocks[rows].min(0), _NOTHING, self.usable[rows].min(0)
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
        address = ml.SHARED_BASE + (place[0] << ml.RANK_SHIFT) + place[1]
        log = np.array([[split.row, split.warp * 32 + split.leader, address, 2 * 4 + 1]], np.int64)
        self.accesses(cluster, log)
        self.acquire(self.rows(split), self.release(row))

    def tmem_free(self, cluster, split, start: int, columns: int, group: int) -> None:
        rows = self.rows(split)
        row = int(rows[0])
        cells = rectangle(split.cta, 0, LANES, start, columns)
        op = Issued("dealloc", split.row, row, self.clocks[rows].min(0), _NOTHING, _NOTHING)
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
            self._ranges(SHARED, *_runs(chunks, rank * self.window), False, token)

    def wgmma_wait(self, cluster, split, token: Issued) -> None:
        rows = self.rows(split)
        self.clocks[rows, token.queue] = np.maximum(self.clocks[rows, token.queue], token.epoch)

    # ---- cp.async ----

    def cp_async_issue(self, cluster, split, reads: np.ndarray, writes: np.ndarray) -> Issued:
        base = self.column("cp.async", 0)
        for thread in range(1, self.threads):
            if ("cp.async", self.threads - 1) in self.columns:
                break
            self.column("cp.async", thread)
        rows = self.rows(split)
        first = split.warp * 32 // self.lanes
        clocks = self.clocks[first : first + 32 // self.lanes].copy()
        self.copies[rows] += 1
        clocks[rows - first, base + rows] = self.copies[rows]
        self.clocks[rows, rows] += 1
        known = self.known[rows].max(0)
        op = Issued("cp.async", split.row, int(rows[0]), clocks, known, _NOTHING, base, logs=(reads, writes))
        op.start = (rows, first, self.copies[rows].copy())
        return _Copies(op)

    def cp_async_copy(self, cluster, token) -> None:
        rows, first, _ = token.op.start
        for log in token.op.logs:
            if len(log):
                self._log(log, token.op.clock, token.op.queue, first)

    def cp_async_wait(self, cluster, split, token) -> None:
        rows, _, counts = token.op.start
        mine = np.isin(rows, self.rows(split))
        rows, counts = rows[mine], counts[mine]
        self.clocks[rows, token.op.queue + rows] = np.maximum(
            self.clocks[rows, token.op.queue + rows], counts
        )


@dataclass(eq=False)
class _Copies:
    """The cp.async of one executed instruction."""

    op: Issued

    def stamp(self) -> Stamp:
        return Stamp(self.op.clock.max(0), self.op.known)


def _runs(index: np.ndarray, base: int) -> tuple[np.ndarray, int]:
    """Chunks of 16 bytes as equal byte ranges: (starts, size)."""
    chunks = np.unique(index.reshape(-1)).astype(np.int64)
    breaks = np.flatnonzero(np.diff(chunks) != 1) + 1
    lengths = np.diff(np.concatenate([[0], breaks, [len(chunks)]]))
    if (lengths == lengths[0]).all():
        return chunks[np.concatenate([[0], breaks]).astype(np.int64)] * 16 + base, int(lengths[0]) * 16
    return chunks * 16 + base, 16
