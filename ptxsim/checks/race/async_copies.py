"""Accesses of copies: TMA, bulk copies, cp.async."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxsim.checks.observer import Observer
from ptxsim.checks.race.async_work import Issued, spans_of
from ptxsim.checks.race.shadow_bytes import SHARED
from ptxsim.checks.race.shadow_order import STRONG
from ptxsim.checks.race.vector_clocks import Stamp
from ptxsim.units.bulk_groups import bulk_groups


class BulkCopies(Observer):
    """Part of the RaceDetector: TMA, cp.async.bulk, st.async."""

    def __init__(self, races):
        self.races, self.history = races, races.history
        self.shared_spans: dict[tuple, tuple] = {}  # (chunks, rank) -> chunks, their spans

    def start(self, cluster) -> None:
        self.clocks, self.transfers = self.races.clocks, self.races.transfers
        self.latest: Issued | None = None

    def tma_issue(self, cluster, split, kind: str, tmap, start, ranks: list[int], offset: int) -> Issued:
        op = self.latest = Issued.of(kind, split, self.clocks)
        op.tmap, op.start, op.ranks = tmap, start, ranks
        if kind == "store":
            op.epoch = bulk_groups(cluster, split.thread).committed + 1
        if split.instr.op == "red" or "reduce" in split.instr.mods:
            op.flags |= STRONG
        return op

    def will_signal(self, cluster, split, kind: str, places: list) -> None:
        """The barriers of the load that was just issued."""
        if kind != "load":
            return
        for place in places:
            self.races.barrier_init.used(split, 1 << split.leader, place, "TMA load")
        self.latest.bars = dict(zip(self.latest.ranks, places, strict=True))

    def async_arrive(self, cluster, place, token) -> None:
        if token is not None:
            self.clocks.signal(place).deliver(token.stamp())

    def async_write(self, cluster, token: Issued, rank: int, offset: int, size: int) -> None:
        self._arrives_on(cluster, token, rank)
        first = offset + rank * self.history.window
        self.history.spans(SHARED, np.array([[first, first + size]], np.int64), True, token)

    def _arrives_on(self, cluster, token: Issued, rank: int) -> None:
        """The agent of a write is the barrier that its bytes reach, in its present phase."""
        place = token.bars[rank]
        barrier = cluster.mbarriers.get(place)
        token.queue, token.epoch = self.clocks.column("bytes", place), barrier.phase + 1 if barrier else 1
        self.transfers.remember(token)

    def tma_write(self, cluster, token: Issued, rank: int, chunks: np.ndarray) -> None:
        self._arrives_on(cluster, token, rank)
        self._shared_chunks(rank, chunks, True, token)
        if rank == token.ranks[0]:
            self.history.box(token.tmap, token.start, False, token)

    def tma_read(self, cluster, token: Issued, rank: int, chunks: np.ndarray) -> None:
        if token.kind == "load":  # a copy between CTAs is done, source and all, when its bytes are announced
            self._arrives_on(cluster, token, token.ranks[0])
        else:
            token.queue = self.clocks.column("source", token.thread)
            self.transfers.remember(token)
        self._shared_chunks(rank, chunks, False, token)

    def tma_global(self, cluster, token: Issued, tmap, start) -> None:
        token.queue = self.clocks.column("result", token.thread)
        self.transfers.remember(token)
        self.history.box(tmap, start, True, token)

    def _shared_chunks(self, rank: int, chunks: np.ndarray, write: bool, op: Issued) -> None:
        key = id(chunks), rank
        known = self.shared_spans.get(key)
        if known is None or known[0] is not chunks:
            known = self.shared_spans[key] = chunks, spans_of(chunks, rank * self.history.window)
        self.history.spans(SHARED, known[1], write, op)

    def bulk_wait(self, cluster, split, allowed: int, reading: bool) -> None:
        for lane in split.lanes.tolist():
            done = bulk_groups(cluster, split.warp * 32 + lane).committed - allowed
            agent = self.clocks.agent_of(split.warp * 32 + lane)
            for kind in ("source",) if reading else ("source", "result"):
                column = self.clocks.columns.get((kind, agent))
                if column is not None:
                    self.clocks.learn(agent, column, done)


@dataclass(eq=False)
class Copies:
    """The cp.async of one executed instruction: each lane's is a piece of work of its own."""

    agents: np.ndarray  # that issued it
    first: int  # agent of the first lane of the warp
    counts: np.ndarray  # number of each agent's copy
    clock: np.ndarray  # of all lanes of the warp
    thread_clock: np.ndarray
    queues: int  # the queue of agent 0
    logs: tuple  # (reads, writes)

    def stamp(self, agent: int) -> Stamp:
        """What comes before the completion of this agent's copy."""
        return Stamp(self.clock[agent - self.first].copy(), self.thread_clock.copy())


class ThreadCopies(Observer):
    """Part of the RaceDetector: cp.async."""

    def __init__(self, races):
        self.races, self.history = races, races.history

    def start(self, cluster) -> None:
        self.clocks = self.races.clocks
        self.counts = np.zeros(self.clocks.threads, np.int64)

    def cp_async_issue(self, cluster, split, reads: np.ndarray, writes: np.ndarray) -> Copies:
        clocks, agents = self.clocks, self.clocks.agents(split)
        queues = self._queues()
        first = clocks.first_agent(split.warp)
        rows = clocks.clock[first : clocks.first_agent(split.warp + 1)].copy()
        self.counts[agents] += 1
        rows[agents - first, queues + agents] = self.counts[agents]
        clocks.clock[agents, agents] += 1
        thread_clock = clocks.thread_clock[agents].max(0)
        return Copies(agents, first, self.counts[agents], rows, thread_clock, queues, (reads, writes))

    def _queues(self) -> int:
        """The first of as many queues in a row as there are agents."""
        if ("cp.async", 0) not in self.clocks.columns:
            for agent in range(self.clocks.threads):
                self.clocks.column("cp.async", agent)
        return self.clocks.column("cp.async", 0)

    def cp_async_copy(self, cluster, token: Copies) -> None:
        for log in token.logs:
            if len(log):
                self.history.log(log, token.clock, token.queues, token.first)

    def cp_async_wait(self, cluster, split, token: Copies) -> None:
        mine = np.isin(token.agents, self.clocks.agents(split))
        agents = token.agents[mine]
        self.clocks.learn(agents, token.queues + agents, token.counts[mine])

    def will_signal(self, cluster, split, kind: str, places: list) -> None:
        """One arrival of each lane, later."""
        if kind == "cp.async":
            for agent, place in zip(self.clocks.agents(split).tolist(), places, strict=False):
                after = Stamp(self.clocks.clock[agent].copy(), self.clocks.thread_clock[agent].copy())
                self.clocks.signal(place).coming.setdefault(agent, []).append((after, split.row))

    def cp_async_arrive(self, cluster, split, place, token: tuple[Copies, ...]) -> None:
        (agent,) = self.clocks.agents(split)
        done = Stamp(np.zeros(1, np.int32), np.zeros(1, np.int32))
        for copies in token:
            if agent in copies.agents:
                done.join(copies.stamp(agent))
        coming = self.clocks.signal(place).coming[agent]
        after, row = coming.pop(0)
        self.races.synchronization.arrive_later(cluster, place, done, after, row)
