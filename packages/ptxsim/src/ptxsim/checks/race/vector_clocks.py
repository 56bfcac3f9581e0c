"""Happens-before as vector clocks of threads and of queues of asynchronous work.

An agent is a thread, or a queue of work that hardware units do: all copies that complete on one mbarrier, all
MMAs of one thread, the bulk groups of a thread, the tcgen05.ld of a warp. `clock[t, a]` is the last epoch of
agent a that thread t can rely on. A thread's epoch ends when it releases; a queue's epoch is its phase, group
or instruction number.

Tensor memory has clocks of its own, because its instructions are ordered by tcgen05.fence (PTX ISA 9.7.16.6):
`thread_clock[t]` follows every synchronisation of threads; `tcgen05_clock[t]` is what t's own tcgen05
instructions come after: its thread_clock at its last fence::after_thread_sync, and its own work. The signal
of a copy comes after its issue, and so after every phase that its thread had seen. thread_clock records this
order, although PTX does not give it for memory (8.9.1.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ptxsim.checks.race.clock_rows import (
    dense,
    joined,
    lowest,
    most,
    raise_rows,
    release_rows,
    release_rows_into,
    rows_of,
    second_most,
    with_epoch,
)
from ptxsim.checks.race.strict_fences import StrictFences
from ptxsim.events.views import Cluster, Split
from ptxsim.machine.split import lane_list

BLOCK = 64  # columns added at a time
MAX_THREADS = 8192  # in a cluster; above that, a warp counts as one agent
_NOTHING = np.zeros(0, np.int32)
_PAST = 1024  # phases of an mbarrier that are remembered


@dataclass
class Agent:
    """A queue of asynchronous work."""

    kind: str  # "ld", "st", "bytes", "mma", "issued", "source", "result", "cp.async"
    owner: Any  # warp, thread or barrier place, as the kind says
    count: int = 0  # epochs begun


class Stamp(NamedTuple):
    """The clocks that a release hands over. Stamps share their arrays, so nobody may write into these."""

    clock: np.ndarray
    thread_clock: np.ndarray

    def joined(self, other: Stamp) -> Stamp:
        """Everything that either stamp hands over."""
        return Stamp(joined(self.clock, other.clock), joined(self.thread_clock, other.thread_clock))

    def common(self, other: Stamp) -> Stamp:
        """Only what both stamps hand over."""
        return Stamp(lowest(self.clock, other.clock), lowest(self.thread_clock, other.thread_clock))

    def knowing(self, clocks: VectorClocks, column: int, epoch: int) -> Stamp:
        """This stamp, extended by an epoch of the queue `column`."""
        thread_clock = with_epoch(self.thread_clock, column - clocks.threads, epoch)
        return Stamp(with_epoch(self.clock, column, epoch), thread_clock)


NO_STAMP = Stamp(_NOTHING, _NOTHING)


@dataclass
class Signal:
    """The releases that reach one synchronisation object, and what its waits acquire."""

    gathered: Any = None  # Stamp of everyone who has arrived in this phase
    published: Any = None  # Stamp: what a completed wait may rely on
    past: dict = field(default_factory=dict)  # phases complete -> `published` then, of the latest phases
    spare: Any = None  # Stamp of an mbarrier: what `gathered` keeps whichever arrival is missing
    lacking: Any = None  # Stamp: `spare` of the last phase
    # (agents, their epochs, stamp) of arrivals by one instruction
    together: list = field(default_factory=list)
    before: list = field(default_factory=list)  # `together` of the last phase
    taken: int = -1  # phases complete when a wait last passed
    coming: dict = field(default_factory=dict)  # agent -> (stamp before, stamp brought, row) of cp.async
    counted: list = field(default_factory=list)  # (agent, epoch, stamp): see `count`
    relaxed: dict = field(default_factory=dict)  # agent -> its epoch when it arrived without release
    stray: int | None = None  # row of an arrival that could have replaced one of the previous phase
    initialised: tuple[int, int] | None = None  # (agent, epoch) of mbarrier.init
    init_fence: tuple[int, int] | None = None  # (agent, epoch) of a fence.mbarrier_init after it
    awaited: bool = False  # some thread has waited, successfully or not

    def add(self, stamp: Stamp) -> None:
        self.gathered = stamp if self.gathered is None else self.gathered.joined(stamp)

    def arrive(self, stamp: Stamp, second: Stamp | None = None) -> None:
        """Adds arrivals on an mbarrier. stamp: what they release; second: the same whichever one of them
        is missing.
        """
        if self.gathered is None:
            self.gathered, self.spare = stamp, second or NO_STAMP
            return
        self.spare = self.spare.joined(self.gathered.common(stamp))
        if second is not None:
            self.spare = self.spare.joined(second)
        self.gathered = self.gathered.joined(stamp)

    def deliver(self, thread_clock: np.ndarray) -> None:
        """Adds bytes delivered to an mbarrier. Of memory they hand over only themselves (PTX ISA 8.9.1.1),
        which the end of the phase does. No arrival can replace them.
        """
        stamp = Stamp(_NOTHING, thread_clock)
        self.add(stamp)
        self.spare = stamp if self.spare is None else self.spare.joined(stamp)

    def count(self, agent: int, epoch: int, stamp: Stamp) -> None:
        """Adds an arrival that the phase expects, by a thread in this epoch. The phase guarantees it only if
        one of the other arrivals comes after it; otherwise the phase could have completed before it.
        """
        self.counted.append((agent, epoch, stamp))

    def advance(self, phase: int) -> None:
        """Completes a phase of an mbarrier: waits from now on come after all its arrivals."""
        told = self.gathered
        for agent, epoch, stamp in self.counted:
            known = told.clock[agent : agent + 1].max(initial=0)
            if max(known, self.relaxed.get(agent, 0)) > epoch:
                self.gathered = self.gathered.joined(stamp)
        self.counted, self.relaxed = [], {}
        self.published = self.past[phase] = self.gathered
        self.past.pop(phase - _PAST, None)
        self.lacking, self.spare = self.spare, self.gathered
        self.before, self.together = self.together, []

    def doubt(self, clocks: np.ndarray, brings: Stamp, row: int) -> None:
        """Lowers what a wait for the last phase may rely on, because of arrivals that came too late for it
        but that nothing orders after it: each could have counted in place of any arrival that it does not
        know of.

        clocks: what the late arrivals know, one row each; brings: what they all hand over. Lanes that arrive
        by one instruction arrive together: an access after one of them is after all of them.
        """
        certain = self.published.common(brings).joined(self.lacking)
        for agents, epochs, stamp in self.before:
            if (clocks[:, agents] >= epochs).any(1).all():
                certain = certain.joined(stamp)
        self.stray = row
        self.rely(certain)

    def rely(self, stamp: Stamp) -> None:
        """Sets what a wait for the last phase may rely on."""
        self.published = stamp
        if self.past:
            self.past[next(reversed(self.past))] = stamp

    def passed_at(self, phase: int) -> Stamp | None:
        """What a wait could rely on when this many phases were complete; None if none were."""
        return self.past.get(max(phase, next(iter(self.past), 0))) if phase else None


@dataclass
class Relaxed:
    """State for fence-based synchronisation of one thread (PTX ISA 8.8): what its last fence released, and
    its last one that reaches other clusters, and what its reads without acquire have seen.
    """

    fence: Stamp | None = None
    wide: Stamp = NO_STAMP
    pending: Stamp | None = None


class VectorClocks:
    """The clocks of one cluster."""

    def __init__(self, cluster: Cluster):
        count = cluster.warps * 32
        self.threads_per_agent = 1 if count <= MAX_THREADS else 32
        self.threads = count // self.threads_per_agent  # agents that are threads; queues come after them
        self.per_cta = self.threads // cluster.ctas
        size = -(-(self.threads + 2 * cluster.warps) // BLOCK) * BLOCK + BLOCK
        self.clock: np.ndarray = np.zeros((self.threads, size), np.int32)
        self.thread_clock: np.ndarray = np.zeros((self.threads, size - self.threads), np.int32)
        self.tcgen05_clock: np.ndarray = np.zeros_like(self.thread_clock)
        np.fill_diagonal(self.clock, 1)
        self.queues: list[Agent] = []
        self.columns: dict[tuple, int] = {}
        for warp in range(cluster.warps):
            self.column("ld", warp)
            self.column("st", warp)
        self.waited_for = self.threads + len(self.queues)  # columns of the queues that have a tcgen05.wait
        self.signals: dict[Any, Signal] = {}
        self.relaxed: dict[int, Relaxed] = {}
        self.strict = StrictFences(self.threads)
        self.agents_of_lanes: dict[tuple[int, int], np.ndarray] = {}
        self.first_copy = 0  # cp.async queue of agent 0, followed by those of the others; 0: none yet
        self.changes = 0  # times that threads have learnt something
        self.steps: list = []  # steps on barriers so far (barrier_record.py)

    # ---- agents ----

    def column(self, kind: str, owner: object) -> int:
        """The column of a queue; creates the queue on first use."""
        column = self.columns.get((kind, owner))
        if column is None:
            column = self.columns[kind, owner] = self.threads + len(self.queues)
            self.queues.append(Agent(kind, owner))
            if column >= self.clock.shape[1]:
                self._widen()
        return column

    def thread_column(self, kind: str, owner: object) -> int:
        """The same in thread_clock and tcgen05_clock, which have no columns of threads."""
        return self.column(kind, owner) - self.threads

    def copy_queues(self) -> int:
        """The first of the cp.async queues, one per thread agent in consecutive columns; creates them on
        first use.
        """
        if not self.first_copy:
            self.first_copy = [self.column("cp.async", agent) for agent in range(self.threads)][0]
        return self.first_copy

    def queue(self, column: int) -> Agent:
        return self.queues[column - self.threads]

    def kind_of(self, agent: int) -> str:
        return "thread" if agent < self.threads else self.queue(agent).kind

    def _widen(self) -> None:
        more = (0, 0), (0, max(BLOCK, self.threads))
        self.clock = np.pad(self.clock, more)
        self.thread_clock = np.pad(self.thread_clock, more)
        self.tcgen05_clock = np.pad(self.tcgen05_clock, more)

    def agents(self, split: Split) -> np.ndarray:
        """Agents of a split's active lanes, ascending."""
        return self.agents_of(split.warp, split.mask)

    def agents_of(self, warp: int, mask: int) -> np.ndarray:
        """Agents of the lanes in a mask, ascending."""
        agents = self.agents_of_lanes.get((warp, mask))
        if agents is None:
            agents = warp * 32 + lane_list(mask) if self.threads_per_agent == 1 else np.array([warp])
            self.agents_of_lanes[warp, mask] = agents
        return agents

    def agent_of(self, thread: int) -> int:
        return thread // self.threads_per_agent

    def warp_of(self, agent: int) -> int:
        return agent * self.threads_per_agent // 32

    def first_agent(self, warp: int) -> int:
        return warp * 32 // self.threads_per_agent

    def rows_of_warp(self, warp: int) -> slice:
        """The rows of all lanes of a warp."""
        return slice(self.first_agent(warp), self.first_agent(warp + 1))

    # ---- release and acquire ----

    def epoch(self, agent: int) -> int:
        """The epoch that a thread's next access belongs to."""
        return int(self.clock[agent, agent])

    def release(self, agents, clock: bool = True) -> Stamp:
        """What these threads hand over now; their next accesses belong to a new epoch. clock=False: a relaxed
        operation, which ends no epoch.
        """
        if not clock:
            return self._relaxed_stamp(agents, most(self.thread_clock, agents))
        if isinstance(agents, np.ndarray) and len(agents) > 1 and dense(agents):
            return Stamp(*release_rows(self.clock, self.thread_clock, int(agents[0]), int(agents[-1]) + 1))
        agents = agents if not isinstance(agents, np.ndarray) or len(agents) > 1 else int(agents[0])
        stamp = Stamp(most(self.clock, agents), most(self.thread_clock, agents))
        self.clock[agents, agents] += 1
        return stamp

    def begin_epochs(self, agents) -> None:
        """The next accesses of these threads belong to a new epoch, though they hand nothing over."""
        self.clock[agents, agents] += 1

    def release_into(self, signal: Signal, agents: np.ndarray) -> None:
        """Adds what these threads hand over now to `gathered` of a barrier, in place where possible."""
        gathered = signal.gathered
        if gathered is None or len(gathered.clock) != self.clock.shape[1] or not dense(agents):
            signal.add(self.release(agents))
        else:
            release_rows_into(self.clock, self.thread_clock, int(agents[0]), int(agents[-1]) + 1, *gathered)

    def _relaxed_stamp(self, agents, thread_clock: np.ndarray) -> Stamp:
        """What a relaxed operation releases: of memory, only what an earlier fence of its thread covers; of
        tensor memory, which tcgen05.ld and st are complete, since it orders execution (PTX ISA 9.7.16.6.3).
        """
        known = most(self.clock[:, : self.waited_for], agents)
        known[: self.threads] = 0
        stamp = Stamp(known, thread_clock)
        for agent in np.atleast_1d(agents):
            fence = self.relaxed.get(int(agent), Relaxed()).fence
            for covered in (fence, self.fenced(int(agent)) if self.strict else None):
                stamp = stamp if covered is None else stamp.joined(covered)
        return stamp

    def fenced(self, agent: int) -> Stamp:
        """What a relaxed write of this thread hands on by fences that reach other clusters: by its own last
        one, and by those .sc of other threads that it comes after. If a fence .sc follows a read of what it
        writes, the Fence-SC order has these first, or the read would come before the write (PTX ISA 8.9).
        """
        own = self.relaxed.get(agent, Relaxed()).wide
        return own.joined(Stamp(*self.strict.known(agent, self.clock[agent]))) if self.strict else own

    def acquire(self, agents, stamp: Stamp | None, clock: bool = True) -> None:
        if stamp is None:
            return
        self.changes += 1
        if clock:
            raise_rows(self.clock, self.thread_clock, agents, *stamp)
            return
        known = stamp.clock[: self.waited_for].copy()
        known[: self.threads] = 0
        raise_rows(self.clock, self.thread_clock, agents, known, stamp.thread_clock)
        for agent in np.atleast_1d(agents):
            relaxed = self.relaxed.setdefault(int(agent), Relaxed())
            relaxed.pending = (relaxed.pending or NO_STAMP).joined(stamp)

    def release_each(self, agents: np.ndarray) -> tuple[Stamp, Stamp | None]:
        """(what these threads hand over now, what is left of it whichever one of them is missing); None:
        nothing.
        """
        second = None
        if len(agents) > 1 and self.threads_per_agent == 1:
            second = Stamp(second_most(self.clock, agents), second_most(self.thread_clock, agents))
        return self.release(agents), second

    def meet(self, agents: np.ndarray) -> None:
        """Makes these threads wait for each other: each then comes after everything that all have done."""
        self.acquire(agents, self.release(agents))

    def fence(self, agents: np.ndarray, near: bool, sc: bool) -> None:
        """fence.acq_rel / .sc / membar: one half of a fence-based release or acquire pattern. near: it does
        not reach other clusters.
        """
        for agent in agents.tolist():
            relaxed = self.relaxed.setdefault(agent, Relaxed())
            if relaxed.pending is not None:
                self.acquire(agent, relaxed.pending)
                relaxed.pending = None
            epoch, relaxed.fence = self.epoch(agent), self.release(agent)
            relaxed.wide = relaxed.wide if near else relaxed.fence
            if sc and not near:
                self.strict.add(agent, epoch, relaxed.fence)

    def tcgen05_fence(self, agents: np.ndarray, after: bool, but: Sequence[int] = ()) -> None:
        """Joins what threads know into what their tcgen05 instructions come after; after=False: the reverse.

        but: columns of the clocks that stay as they are.
        """
        self.changes += 1
        rows = rows_of(agents)
        both = np.maximum(self.tcgen05_clock[rows], self.thread_clock[rows])
        if but:
            both[:, but] = self.thread_clock[rows][:, but]
        (self.tcgen05_clock if after else self.thread_clock)[rows] = both

    def snapshot(self, agent: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Copies of the agent's three clocks: what asynchronous work issued now comes after. Ends the agent's
        epoch.
        """
        clocks = self.clock[agent].copy(), self.thread_clock[agent].copy(), self.tcgen05_clock[agent].copy()
        self.begin_epochs(agent)
        return clocks

    def learn(self, agents, column, epochs) -> None:
        """Records that these threads have waited for a queue's work, or each for its own queue's, up to these
        epochs.
        """
        self.changes += 1
        rows = rows_of(agents) if isinstance(column, int) else agents
        self.clock[rows, column] = np.maximum(self.clock[rows, column], epochs)

    def signal(self, key) -> Signal:
        found = self.signals.get(key)
        if found is None:
            found = self.signals[key] = Signal()
        return found
