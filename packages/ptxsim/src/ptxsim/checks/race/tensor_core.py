"""Accesses of the tensor cores: tcgen05.mma with its commits, and wgmma."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxsim.checks.race.async_work import Issued, spans_of
from ptxsim.checks.race.clock_rows import joined, most, with_epoch
from ptxsim.checks.race.shadow_bytes import SHARED
from ptxsim.checks.race.shadow_order import SERIAL
from ptxsim.checks.race.shadow_tmem import rectangle
from ptxsim.checks.race.vector_clocks import Stamp
from ptxsim.events.observer import Observer
from ptxsim.isa.number_formats import DECODERS
from ptxsim.machine.tensor_memory import COLUMNS, LANES, split_address
from ptxsim.units.matrix_operands import operand_chunks
from ptxsim.units.tcgen05_mma import operand_lanes, result_blocks
from ptxsim.units.tcgen05_scales import scale_columns
from ptxsim.units.tcgen05_sparse import metadata_columns

MMA_K_BYTES = 32
_IN_FLIGHT = 64  # wgmma instructions of a warpgroup that can be waited for
_NOTHING = np.zeros(0, np.int32)


class Tcgen05(Observer):
    """Part of the RaceDetector: tcgen05.mma and tcgen05.commit."""

    def __init__(self, races):
        self.races, self.history, self.tmem = races, races.history, races.tensor_memory
        self.operands: dict[tuple, np.ndarray] = {}  # byte ranges of operands, by descriptor
        self.cells: dict[tuple, np.ndarray] = {}  # TMEM cells of results

    def start(self, cluster) -> None:
        self.clocks, self.transfers = self.races.clocks, self.races.transfers
        self.issued: dict[int, Issued] = {}
        self.latest: Any = None  # Issued: commit
        self.last: Issued | None = None  # MMA whose clocks are its own
        self.state: tuple | None = None  # of its thread, behind it

    def mma_issue(self, cluster, split, op) -> None:
        item = self._item(split)
        queue = self.clocks.queue(item.queue)
        queue.count += 1
        item.epoch = queue.count
        self.clocks.tcgen05_clock[item.thread, item.queue + 1 - self.clocks.threads] = queue.count
        self.issued[id(op)] = item
        self.transfers.remember(item)

    def cp_issue(self, cluster, split, copy) -> None:
        """In order with the MMAs of its thread (PTX ISA 9.7.16.6.2)."""
        self.mma_issue(cluster, split, copy)

    def cp_execute(self, cluster, copy, chunks: np.ndarray, cells) -> None:
        item, (lanes, columns) = self.issued.pop(id(copy)), cells
        for rank in copy.ranks:
            if len(chunks):
                self.history.spans(SHARED, spans_of(chunks, rank * self.history.window), False, item)
            block = (rank * (LANES // 16) + lanes // 16) * COLUMNS + columns
            self.tmem.touch(np.unique(block.astype(np.int64)), True, item)

    def _item(self, split) -> Issued:
        """An MMA that comes after the same as the one before it shares its clocks: its thread has learnt and
        handed over nothing since, and nobody has stored what it could read.
        """
        clocks, thread, stores = self.clocks, self.clocks.agent_of(split.thread), self.history.stores()
        state = thread, clocks.clock.item(thread, thread), clocks.changes, stores
        last = self.last
        if state == self.state and last is not None:
            known = last.clock, last.thread_clock, last.tcgen05_clock
            return Issued("mma", split.row, thread, *known, last.queue, 0, last.flags, stores=stores)
        item = self.last = Issued.of("mma", split, clocks)
        item.flags |= SERIAL
        item.queue, item.stores = self.tmem.mma_queue(thread), stores
        self.state = thread, state[1] + 1, clocks.changes, stores
        return item

    def commit_issue(self, cluster, split) -> Issued:
        item = self.latest = Issued.of("commit", split, self.clocks)
        threads, queue = self.clocks.threads, self.tmem.mma_queue(item.thread)
        item.queue, item.epoch = queue, self.clocks.queue(queue).count
        item.clock = with_epoch(item.clock, queue, item.epoch)
        item.thread_clock = with_epoch(item.thread_clock, queue - threads, item.epoch)
        return item

    def will_signal(self, cluster, split, kind: str, places: list) -> None:
        """The barriers of the commit that was just issued."""
        if kind != "commit":
            return
        for place in places:
            self.races.barrier_init.used(split, 1 << split.leader, place, "tcgen05.commit")
        known = self.transfers.commits.setdefault(self.latest.queue, [])
        known += [(self.latest.epoch, place) for place in places]

    def async_arrive(self, cluster, place, token) -> None:
        if token is not None:
            stamp = token.stamp()
            self.races.synchronization.arrive_later(cluster, place, stamp, stamp, token.row)

    def mma_execute(self, cluster, ops: list, ranks: list[int]) -> None:
        """Those that know the same read as one: who knows that the last one is done, knows it of all."""
        items = [self.issued.pop(id(op)) for op in ops]
        for op, item in zip(ops, items, strict=True) if isinstance(ops[0].a, tuple) else ():
            for rank in ranks:
                self.tmem.touch(self._a_cells(op, rank), False, item)
        for rank in ranks if ops[0].alone else ():
            for column, columns in [*scale_columns(ops[0]), *metadata_columns(ops[0])]:
                self.tmem.touch(rectangle(rank, 0, LANES, column, columns), False, items[0])
        start = 0
        for i in range(1, len(ops) + 1):
            if i == len(ops) or not _alike(items[start], items[i]):
                self._reads(ops[start:i], ranks, items[i - 1])
                start = i
        op = ops[0]
        key = (op.shape.m, op.shape.n, op.group, op.lane, op.column, tuple(ranks), op.ws)
        cells = self._d_cells(key)
        for item in (items[0], items[-1]):
            self.tmem.result(key, cells, (op.column, op.column + op.shape.n), item)

    def _reads(self, ops: list, ranks: list[int], item: Issued) -> None:
        first = ops[0]
        shape = first.shape
        forms = shape.m, shape.n, shape.a_type, shape.b_type, shape.a_mn_major, shape.b_mn_major
        key = (first.group, *forms, *ranks, *[x for op in ops for x in (op.a, op.b)])
        spans = self.operands.get(key)
        if spans is None:
            spans = self.operands[key] = self._operands(ops, ranks)
        if len(spans):
            self.history.spans(SHARED, spans, False, item)

    def _operands(self, ops: list, ranks: list[int]) -> np.ndarray:
        """Spans of shared memory that these instructions read; none for a descriptor that is not legal."""
        shape, group, window = ops[0].shape, ops[0].group, self.history.window
        sides = [("b", shape.n // group, shape.b_type, shape.b_mn_major)]
        if not isinstance(ops[0].a, tuple):
            sides.append(("a", shape.m // group, shape.a_type, shape.a_mn_major))
        found = [np.zeros(0, np.int64)]
        for side, rows, kind, mn in sides:
            for op in ops:
                try:
                    width, k_bytes = DECODERS[kind].bytes, op.k_bytes(side)
                    chunks = operand_chunks((getattr(op, side),), rows, width, mn, k_bytes=k_bytes)
                except ValueError:
                    continue
                if chunks.first >= 0 and chunks.last < window:
                    found += [chunks.index.reshape(-1) + rank * window // 16 for rank in ranks]
        every = np.concatenate(found)
        return spans_of(every) if len(every) else np.zeros((0, 2), np.int64)

    def _d_cells(self, key: tuple) -> np.ndarray:
        if key not in self.cells:
            m, n, group, first_lane, first_column, ranks, ws = key
            parts = []
            for rank in ranks:
                for lane, _, rows, tmem_column, _, columns in result_blocks(m, n, group, ws):
                    column, first = first_column + tmem_column, first_lane + lane
                    columns, rows = min(columns, COLUMNS - column), min(rows, LANES - first)
                    if columns > 0 and rows > 0:
                        parts.append(rectangle(rank, first, rows, column, columns))
            self.cells[key] = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        return self.cells[key]

    def _a_cells(self, op, rank: int) -> np.ndarray:
        _, column = split_address(op.a[1])
        lanes = np.concatenate([operand_lanes(op, part) for part in range(op.copies)])
        columns = min(MMA_K_BYTES // 4, COLUMNS - column)
        lanes = lanes[lanes < LANES]
        if not len(lanes) or columns <= 0:
            return np.zeros(0, np.int64)
        runs = np.split(lanes, np.flatnonzero(np.diff(lanes) != 1) + 1)
        return np.concatenate([rectangle(rank, int(r[0]), len(r), column, columns) for r in runs])


def _alike(first: Issued, other: Issued) -> bool:
    """Do two MMAs of one thread come after the same? They differ in their issuer's own epoch."""
    same = first.stores == other.stores and len(first.clock) == len(other.clock)
    return first.clock is other.clock or same and int(np.count_nonzero(first.clock != other.clock)) <= 1


class Wgmma(Observer):
    """Part of the RaceDetector. Each warp of a warpgroup issues its share; wgmma-groups, and so completion,
    belong to the warpgroup (PTX ISA 9.7.15.7.2): the shares of one instruction are one epoch of one queue.
    """

    def __init__(self, races):
        self.races, self.history = races, races.history

    def start(self, cluster) -> None:
        self.clocks = self.races.clocks
        self.issued: dict[int, int] = {}  # warp -> instructions
        self.reached: dict[tuple, np.ndarray] = {}  # (queue, epoch) -> thread_clock of those who issued it

    def wgmma_issue(self, cluster, split) -> Issued:
        """One warp's share: it comes after what any lane knows, as all have come here (.sync.aligned)."""
        clocks, agents = self.clocks, self.clocks.agents(split)
        op = Issued("wgmma", split.row, int(agents[0]), most(clocks.clock, agents), _NOTHING, _NOTHING)
        clocks.clock[agents, agents] += 1
        op.queue = clocks.column("wgmma", split.warp - split.warp % cluster.warps_per_cta % 4)
        op.epoch = self.issued[split.warp] = self.issued.get(split.warp, 0) + 1
        known, reached = most(clocks.thread_clock, agents), self.reached.get((op.queue, op.epoch))
        self.reached[op.queue, op.epoch] = known if reached is None else joined(reached, known)
        self.reached.pop((op.queue, op.epoch - _IN_FLIGHT), None)
        return op

    def wgmma_read(self, cluster, token: Issued, rank: int, chunks: np.ndarray) -> None:
        if len(chunks):
            self.history.spans(SHARED, spans_of(chunks, rank * self.history.window), False, token)

    def wgmma_wait(self, cluster, split, token: Issued) -> None:
        """All warps of the group have come to it, though they hand on no memory access by that."""
        agents = self.clocks.agents(split)
        self.clocks.learn(agents, token.queue, token.epoch)
        reached = self.reached.get((token.queue, token.epoch))
        if reached is not None:
            self.clocks.acquire(agents, Stamp(_NOTHING, reached))
