"""Accesses by copies: TMA, bulk copies, cp.async."""

from __future__ import annotations

import functools
from collections import deque
from dataclasses import dataclass

import numpy as np

from ptxsim.checks.phrases import load_unit
from ptxsim.checks.race.async_work import Issued, byte_ranges
from ptxsim.checks.race.part import Part
from ptxsim.checks.race.shadow_bytes import SHARED
from ptxsim.checks.race.shadow_order import STRONG
from ptxsim.checks.race.vector_clocks import Stamp
from ptxsim.events.records import BulkCopy, CopyArrival, Place, SharedSpan
from ptxsim.events.views import Cluster, Split
from ptxsim.jit.bytecode import LOG_THREAD
from ptxsim.machine.register_files import WHOLE_WARP

_NOTHING = np.zeros(0, np.int32)
_REMEMBERED = 64  # cp.async instructions per warp whose sources are kept


class BulkCopyOrder(Part):
    """Part of the RaceDetector: accesses and order of TMA, cp.async.bulk and st.async."""

    def __init__(self, races):
        super().__init__(races)
        self.history = races.history
        self.known: dict[SharedSpan, np.ndarray] = {}  # -> byte ranges in the shadow

    def start(self, cluster: Cluster) -> None:
        self.clocks, self.transfers = self.races.clocks, self.races.transfers
        self.committed = np.zeros(cluster.warps * 32, np.int64)  # bulk groups committed by each thread
        self.storing: set[int] = set()  # threads that have issued a bulk store
        self.waits: dict[int, list[tuple[int, int, int]]] = {}  # agent -> (groups done, committed, row) each
        self.reads: dict[int, tuple[int, int]] = {}  # agent -> (groups done, row) of its last wait_group.read

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> Issued:
        op = Issued.of(copy.kind, split, self.clocks)
        op.copy = copy
        if copy.kind == "store":
            op.epoch = self.committed.item(split.thread) + 1
            self.storing.add(split.thread)
        if copy.reduces:
            op.flags |= STRONG
        if copy.tensor.at:
            op.map_clock = self._with_own_warp(op)
        for place in copy.barriers:
            self.races.barrier_init.used(split, 1 << split.leader, place, load_unit(split.instr))
        return op

    def async_arrive(self, cluster: Cluster, place, token) -> None:
        if token is not None:
            self.clocks.signal(place).deliver(token.thread_clock)

    def copy_read(self, cluster: Cluster, token: Issued, copy: BulkCopy) -> None:
        assert copy.source is not None
        if copy.kind == "load":  # a copy between CTAs has read its source when its bytes are signalled
            self._arrives_on(cluster, token, copy.barriers[0])
        else:
            self._acts_as("source", token)
            self._read_map(token, copy)
        self._touch(copy.source, False, token)

    def copy_write(self, cluster: Cluster, token: Issued, copy: BulkCopy) -> None:
        for target, place in zip(copy.targets, copy.barriers, strict=True):
            self._arrives_on(cluster, token, place)
            self._touch(target, True, token)
            if target is copy.targets[0]:
                self._read_map(token, copy)
                self.history.box(copy.tensor, copy.start, False, token)
        if copy.kind == "store":
            self._acts_as("result", token)
            self.history.box(copy.tensor, copy.start, True, token)

    def _arrives_on(self, cluster: Cluster, token: Issued, place: Place) -> None:
        """Makes the barrier that the bytes reach, in its current phase, the agent of a write."""
        barrier = cluster.mbarriers.get(place)
        token.queue, token.epoch = self.clocks.column("bytes", place), barrier.phase + 1 if barrier else 1
        self.transfers.remember(token)

    def _acts_as(self, kind: str, token: Issued) -> None:
        """Makes this queue of its thread the agent of a store."""
        token.queue = self.clocks.column(kind, token.thread)
        self.transfers.remember(token)

    def _with_own_warp(self, op: Issued) -> np.ndarray:
        """What the issuer knew, and everything its warp did: tensormap.cp_fenceproxy acts for the whole
        warp.
        """
        lanes = self.clocks.agents_of(self.clocks.warp_of(op.thread), WHOLE_WARP)
        clock = np.zeros(self.clocks.clock.shape[1], np.int32)
        clock[: len(op.clock)] = op.clock
        clock[lanes] = self.clocks.clock[lanes, lanes]
        clock[op.thread] = op.clock[op.thread]
        return clock

    def _read_map(self, op: Issued, copy: BulkCopy) -> None:
        """Looks up the read of the tensor map, which lasts until the copy has read its source (PTX ISA
        9.7.9.25.4).
        """
        if copy.tensor.at:
            self.history.map_of(copy.tensor, op.of_map())

    def _touch(self, span: SharedSpan, write: bool, op: Issued) -> None:
        known = self.known.get(span)
        if known is None:
            known = self.known[span] = byte_ranges(span, self.history.window)
        self.history.spans(SHARED, known, write, op)

    def bulk_commit(self, cluster: Cluster, split: Split) -> None:
        self.committed[split.warp * 32 + split.lanes] += 1

    def bulk_wait(self, cluster: Cluster, split: Split, allowed: int, reading: bool) -> None:
        for thread in self.storing.intersection((split.warp * 32 + split.lanes).tolist()):
            committed, agent = self.committed.item(thread), self.clocks.agent_of(thread)
            done = committed - allowed
            self.waits.setdefault(agent, []).append((done, committed, split.row))
            if reading:
                self.reads[agent] = done, split.row
            for kind in ("source",) if reading else ("source", "result"):
                column = self.clocks.columns.get((kind, agent))
                if column is not None:
                    self.clocks.learn(agent, column, done)

    def left_pending(self, agent: int, group: int) -> tuple[int, int] | None:
        """(groups left pending, row) of the first wait of the thread that left this group pending; None:
        no such wait.
        """
        waits = self.waits.get(agent, [])
        return next((((c - done), row) for done, c, row in waits if done < group <= c), None)

    def waited_late(self, agent: int, group: int) -> int | None:
        """The row of the first wait of the thread that covers this group; None: no such wait."""
        return next((row for done, _, row in self.waits.get(agent, ()) if group <= done), None)

    def only_read(self, agent: int, group: int) -> int | None:
        """The row of the thread's last wait_group.read, if it covers this group."""
        done, row = self.reads.get(agent, (0, 0))
        return row if group <= done else None


@dataclass(eq=False)
class Brought:
    """What the cp.async of one executed instruction copy, lane by lane."""

    agents: np.ndarray  # that issued the copies
    epochs: np.ndarray  # of the agents at issue; they number the copies of each queue
    logs: tuple  # (reads, writes)

    @functools.cached_property
    def epoch_of(self) -> dict[int, int]:
        return dict(zip(self.agents.tolist(), self.epochs.tolist(), strict=True))

    def contents(self, agent: int) -> tuple:
        """What this agent's copy writes: (source minus target address, its target if the rest is zeros)."""
        reads, (_, thread, target, size) = self.logs[0], self.logs[1][self.agents == agent][0].tolist()
        for _, _, source, given in reads[reads[:, LOG_THREAD] == thread].tolist():
            return source - target, (target, given) if given < size - 1 else ()
        return ()


@dataclass(eq=False)
class Copies(Brought):
    """The same under way: each lane's copy is a separate piece of work."""

    first: int  # agent of the first lane of the warp
    clock: np.ndarray  # of all lanes of the warp: a copy does not come after earlier ones (PTX ISA 8.9.1.1)
    queues: int  # the queue of agent 0


class ThreadCopies(Part):
    """Part of the RaceDetector: accesses and order of cp.async."""

    def __init__(self, races):
        super().__init__(races)
        self.history = races.history

    def start(self, cluster: Cluster) -> None:
        self.latest: dict[int, deque[Brought]] = {}  # first agent of a warp -> its last copies
        self.told: dict[tuple, deque] = {}  # (agent, place) -> (epoch, stamp brought) of pending arrivals
        self.last = np.zeros(self.clocks.threads, np.int32)  # epoch of each agent's last copy

    def cp_async_issue(self, cluster: Cluster, split: Split, reads: np.ndarray, writes: np.ndarray) -> Copies:
        clocks, agents = self.clocks, self.clocks.agents(split)
        if not clocks.first_copy:
            clocks.copy_queues()
            self.history.describe()
        queues = clocks.first_copy
        first, rows = clocks.first_agent(split.warp), clocks.clock[clocks.rows_of_warp(split.warp)].copy()
        token = Copies(agents, clocks.clock[agents, agents], (reads, writes), first, rows, queues)
        clocks.begin_epochs(agents)
        self.last[agents] = token.epochs
        latest = self.latest.setdefault(first, deque(maxlen=_REMEMBERED))
        latest.append(Brought(agents, token.epochs, token.logs))
        return token

    def contents(self, queue: int, epoch: int) -> tuple | None:
        """What a copy writes, in a form that is equal for copies of the same bytes to the same place; None if
        it is not remembered.
        """
        agent = queue - self.clocks.first_copy
        first = self.clocks.first_agent(self.clocks.warp_of(agent))
        known = (copies for copies in self.latest.get(first, ()) if copies.epoch_of.get(agent) == epoch)
        return next((copies.contents(agent) for copies in known), None)

    def cp_async_copy(self, cluster: Cluster, token: Copies) -> None:
        for log in token.logs:
            if len(log):
                self.history.log(log, token.clock, token.queues, token.first)

    def cp_async_wait(self, cluster: Cluster, split: Split, token: Copies) -> None:
        mine = np.isin(token.agents, self.clocks.agents(split))
        agents = token.agents[mine]
        self.clocks.learn(agents, token.queues + agents, token.epochs[mine])

    def cp_async_signal(self, cluster: Cluster, split: Split, arrival: CopyArrival) -> None:
        """Each arrival comes after the copies that its lane has issued, but not after anything else that
        the lane did before (PTX ISA 8.9.1.1).
        """
        for agent, place in zip(self.clocks.agents(split).tolist(), arrival.places, strict=False):
            after = Stamp(self.clocks.clock[agent].copy(), self.clocks.thread_clock[agent].copy())
            brings = Stamp(self._copies_of(agent), after.thread_clock)
            if not arrival.counted:
                coming = self.clocks.signal(place).coming
                coming.setdefault(agent, deque()).append((after, brings, split.row))
            else:
                self.told.setdefault((agent, place), deque()).append((self.clocks.epoch(agent), brings))
                self.clocks.begin_epochs(agent)

    def _copies_of(self, agent: int) -> np.ndarray:
        """A clock that knows of the copies that this agent has issued, and of nothing else."""
        if not self.last[agent]:
            return _NOTHING
        clock = np.zeros(self.clocks.first_copy + agent + 1, np.int32)
        clock[-1] = self.last[agent]
        return clock

    def cp_async_arrive(
        self, cluster: Cluster, split: Split, place, tokens: list[Copies], arrival: CopyArrival
    ) -> None:
        (agent,) = self.clocks.agents(split)
        signal = self.clocks.signal(place)
        if not arrival.counted:
            after, brings, row = signal.coming[agent].popleft()
            self.races.synchronization.arrive_later(cluster, place, brings, after, row)
        else:
            signal.count(agent, *self.told[agent, place].popleft())
