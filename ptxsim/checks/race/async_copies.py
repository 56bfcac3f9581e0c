"""Accesses of copies: TMA, bulk copies, cp.async; and whether an mbarrier was initialised before its use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxsim.checks.race.async_work import Issued
from ptxsim.checks.race.proxy_fences import MEMORY, SHARED
from ptxsim.checks.race.shadow_bytes import STRONG
from ptxsim.checks.race.tensor_core import TensorCores
from ptxsim.checks.race.tma_ranges import box_rows
from ptxsim.checks.race.vector_clocks import Stamp

_NOTHING = np.zeros(0, np.int32)


class AsyncUnits(TensorCores):
    """Observer part of Races: copies and mbarriers."""

    # ---- mbarriers ----

    def mbarrier_arrive(self, cluster, split, lanes: int, place, relaxed: bool) -> None:
        self._after_init(split, lanes, place, "arrive")
        super().mbarrier_arrive(cluster, split, lanes, place, relaxed)

    def mbarrier_wait(self, cluster, split, lanes: int, place, relaxed: bool) -> None:
        self._after_init(split, lanes, place, "wait")
        super().mbarrier_wait(cluster, split, lanes, place, relaxed)

    def mbarrier_init(self, cluster, split, lane: int, place) -> None:
        super().mbarrier_init(cluster, split, lane, place)
        self.initialised = {key: lanes for key, lanes in self.initialised.items() if key[0] != place}

    def init_fence(self, rows: np.ndarray) -> None:
        """fence.mbarrier_init: whatever synchronises behind it, relaxed too, hands on its thread's inits."""
        for signal in self.signals.values():
            if signal.initialised is not None and signal.init_fence is None and signal.initialised[0] in rows:
                column = self.column("init", signal.initialised[0])
                agent = self.agent(column)
                agent.count += 1
                signal.init_fence = column, agent.count
                self.known[agent.owner, column - self.threads] = agent.count

    def _after_init(self, split, lanes: int, place, what: str) -> None:
        """A barrier may be used by whoever comes after its mbarrier.init."""
        known = self.initialised.get((place, split.warp), 0)
        signal = self.signals.get(place)
        if not lanes & ~known or signal is None or signal.initialised is None:
            return
        self.initialised[place, split.warp] = known | lanes
        rows, (agent, epoch) = self.rows_of(split.warp, lanes & ~known), signal.initialised
        early = (self.clocks[rows, agent] < epoch) & (rows != agent)
        if signal.init_fence is not None:
            column, at = signal.init_fence
            early &= self.known[rows, column - self.threads] < at
        for _ in range(np.count_nonzero(early)):
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
        if split.instr.op == "red" or "reduce" in split.instr.mods:
            op.flags |= STRONG
        self.latest = op
        return op

    def will_signal(self, cluster, split, kind: str, places: list) -> None:
        """The barriers of the load or commit that was just issued."""
        op = self.latest
        for place in places:
            self._after_init(
                split,
                1 << op.thread * self.lanes % 32,
                place,
                "TMA load" if kind == "load" else "tcgen05.commit",
            )
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
