"""What has happened before what: vector clocks of threads and of queues of asynchronous work.

An agent is a thread, or a queue of work that hardware units do: all copies that complete on one mbarrier, all
MMAs of one thread, the bulk groups of a thread, the tcgen05.ld of a warp. `clocks[t, a]` is the last epoch of
agent a that thread t can rely on. A thread's epoch ends when it releases; a queue's epoch is its phase, group
or instruction number.

`known` and `usable` are the same for tensor memory, whose instructions order themselves by tcgen05.fence (PTX
ISA 9.7.16.6): `known[t]` follows every synchronisation of threads, `usable[t]` is what t's own tcgen05
instructions come
after: known at its last fence::after_thread_sync, and its own work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from ptxsim.checks.observer import Observer
from ptxsim.machine.split import lane_list

BLOCK = 64  # columns added at a time
MAX_THREADS = 2048  # in a cluster; above that, a warp counts as one agent


@dataclass
class Agent:
    """A queue of asynchronous work."""

    kind: str  # "ld", "st", "bytes", "mma", "issued", "source", "result", "cp.async"
    owner: object  # warp, thread or barrier place
    count: int = 0  # epochs begun


@dataclass
class Stamp:
    """What a release hands over."""

    clock: np.ndarray
    known: np.ndarray

    def join(self, other: Stamp) -> None:
        self.clock, self.known = joined(self.clock, other.clock), joined(self.known, other.known)


@dataclass
class Signal:
    """The releases that reach one synchronisation object."""

    gathered: Stamp | None = None  # by everyone who has arrived
    published: Stamp | None = None  # what a completed wait may rely on
    initialised: tuple[int, int] | None = None  # (agent, epoch) of mbarrier.init
    init_fence: tuple[int, int] | None = None  # (agent, epoch) of a fence.mbarrier_init behind it
    awaited: bool = False  # somebody has waited, with success or not

    def add(self, stamp: Stamp) -> None:
        if self.gathered is None:
            self.gathered = Stamp(stamp.clock.copy(), stamp.known.copy())
        else:
            self.gathered.join(stamp)

    def publish(self) -> None:
        if self.gathered is not None:
            self.published = Stamp(self.gathered.clock.copy(), self.gathered.known.copy())


@dataclass
class Relaxed:
    """What fence-based synchronisation of one thread needs (PTX ISA 8.8): its last fence, and reads without
    acquire.
    """

    fence: Stamp | None = None
    pending: Stamp | None = None


def joined(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if len(a) < len(b):
        a, b = b.copy(), a
    np.maximum(a[: len(b)], b, out=a[: len(b)])
    return a


class Order(Observer):
    """Follows every synchronisation of a cluster."""

    def start(self, cluster) -> None:
        self.cluster = cluster
        count = cluster.warps * 32
        self.lanes = 1 if count <= MAX_THREADS else 32  # threads per agent
        self.threads = count // self.lanes
        width = self.threads + 2 * cluster.warps
        self.agents: list[Agent] = []
        self.columns: dict[tuple, int] = {}
        size = -(-width // BLOCK) * BLOCK + BLOCK
        self.clocks = np.zeros((self.threads, size), np.int32)
        self.known = np.zeros((self.threads, size - self.threads), np.int32)
        self.usable = np.zeros_like(self.known)
        np.fill_diagonal(self.clocks, 1)
        for warp in range(cluster.warps):
            self.column("ld", warp)
            self.column("st", warp)
        self.signals: dict[object, Signal] = {}
        self.meetings: dict[object, list] = {}
        self.relaxed: dict[int, Relaxed] = {}
        self.lane_rows: dict[tuple[int, int], np.ndarray] = {}

    # ---- agents ----

    def column(self, kind: str, owner: object) -> int:
        """The number of an agent; made on first use."""
        column = self.columns.get((kind, owner))
        if column is None:
            column = self.columns[kind, owner] = self.threads + len(self.agents)
            self.agents.append(Agent(kind, owner))
            if column >= self.clocks.shape[1]:
                self._widen()
        return column

    def agent(self, column: int) -> Agent:
        return self.agents[column - self.threads]

    def _widen(self) -> None:
        more = max(BLOCK, self.threads)
        self.clocks = np.pad(self.clocks, ((0, 0), (0, more)))
        self.known = np.pad(self.known, ((0, 0), (0, more)))
        self.usable = np.pad(self.usable, ((0, 0), (0, more)))

    def rows(self, split) -> np.ndarray:
        """Agents of a split's active lanes."""
        return self.rows_of(split.warp, split.mask)

    def rows_of(self, warp: int, mask: int) -> np.ndarray:
        """Agents of the lanes of a mask, ascending."""
        rows = self.lane_rows.get((warp, mask))
        if rows is None:
            lanes = lane_list(mask)
            rows = warp * 32 + lanes if self.lanes == 1 else np.array([warp])
            self.lane_rows[warp, mask] = rows
        return rows

    def lane_row(self, split, lane: int) -> int:
        return (split.warp * 32 + lane) // self.lanes

    # ---- release and acquire ----

    def release(self, rows, clock: bool = True) -> Stamp:
        """What these threads hand over now; their next accesses are of a new epoch. clock=False: relaxed."""
        known = most(self.known, rows)
        if not clock:
            return self._relaxed_stamp(rows, known)
        clocks = most(self.clocks, rows)
        self.clocks[rows, rows] += 1
        return Stamp(clocks, known)

    def _relaxed_stamp(self, rows, known: np.ndarray) -> Stamp:
        """A relaxed operation releases what an earlier fence of its thread covers."""
        stamp = Stamp(np.zeros(1, np.int32), known)
        for row in np.atleast_1d(rows):
            fence = self.relaxed.get(int(row), Relaxed()).fence
            if fence is not None:
                stamp.join(fence)
        return stamp

    def acquire(self, rows, stamp: Stamp | None, clock: bool = True) -> None:
        if stamp is None:
            return
        _raise(self.known, rows, stamp.known)
        if clock:
            _raise(self.clocks, rows, stamp.clock)
            return
        for row in np.atleast_1d(rows):
            relaxed = self.relaxed.setdefault(int(row), Relaxed())
            relaxed.pending = relaxed.pending or Stamp(np.zeros(1, np.int32), np.zeros(1, np.int32))
            relaxed.pending.join(stamp)

    def snapshot(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """What an asynchronous operation issued now comes after: (clock, usable). Ends the issuer's epoch."""
        clock, usable = self.clocks[row].copy(), self.usable[row].copy()
        self.clocks[row, row] += 1
        return clock, usable

    def signal(self, key) -> Signal:
        found = self.signals.get(key)
        if found is None:
            found = self.signals[key] = Signal()
        return found

    # ---- threads ----

    def memory_fence(self, rows: np.ndarray) -> None:
        """fence.acq_rel / .sc / membar: one half of a fence-based release or acquire pattern."""
        for row in rows:
            relaxed = self.relaxed.setdefault(int(row), Relaxed())
            if relaxed.pending is not None:
                self.acquire(int(row), relaxed.pending)
                relaxed.pending = None
            relaxed.fence = self.release(int(row))

    def warp_sync(self, cluster, split, members: int) -> None:
        members &= cluster.alive[split.warp]
        key = ("warp", split.warp, members)
        seen = self.meetings.pop(key, [0])[0]
        if not seen:
            rows = self.rows_of(split.warp, members)
            self.acquire(rows, self.release(rows))
        seen |= split.mask
        if members & ~seen:
            self.meetings[key] = [seen]

    def bar_arrive(self, cluster, split, number: int) -> None:
        key = ("bar", split.cta, number)
        rows = self.rows(split)
        self.signal(key).add(self.release(rows))
        self.meetings.setdefault(key, []).append((split.index, rows))

    def bar_complete(self, cluster, cta: int, number: int, waiting: list) -> None:
        key = ("bar", cta, number)
        signal = self.signals.pop(key)
        waits = {split.index for split in waiting}
        rows = [r for index, r in self.meetings.pop(key, []) if index in waits]
        if rows:
            self.acquire(np.sort(np.concatenate(rows)), signal.gathered)

    def cluster_arrive(self, cluster, split, relaxed: bool) -> None:
        self.signal("cluster").add(self.release(self.rows(split), clock=not relaxed))

    def cluster_complete(self, cluster) -> None:
        signal = self.signal("cluster")
        signal.publish()
        signal.gathered = None

    def cluster_wait(self, cluster, split) -> None:
        self.acquire(self.rows(split), self.signal("cluster").published)

    # ---- mbarriers ----

    def mbarrier_init(self, cluster, split, lane: int, place) -> None:
        row = self.lane_row(split, lane)
        self.signals[place] = Signal(initialised=(row, int(self.clocks[row, row])))

    def mbarrier_arrive(self, cluster, split, lanes: int, place, relaxed: bool) -> None:
        self.signal(place).add(self.release(self.rows_of(split.warp, lanes), clock=not relaxed))

    def mbarrier_wait(self, cluster, split, lanes: int, place, relaxed: bool) -> None:
        signal = self.signal(place)
        signal.awaited = True
        self.acquire(self.rows_of(split.warp, lanes), signal.published, clock=not relaxed)

    def mbarrier_blocked(self, cluster, split, lanes: int, place, parity: int) -> None:
        self.signal(place).awaited = True

    def phase_complete(self, cluster, place) -> None:
        signal = self.signal(place)
        column = self.columns.get(("bytes", place))
        if column is not None and signal.gathered is not None:
            stamp = signal.gathered
            stamp.clock = joined(stamp.clock, np.zeros(column + 1, np.int32))
            stamp.clock[column] = cluster.mbarriers[place].phase
        signal.publish()

    # ---- tensor memory ----

    def tcgen05_fence(self, cluster, split, after: bool) -> None:
        rows = self.rows(split)
        if after:
            self.usable[rows] = np.maximum(self.usable[rows], self.known[rows])
        else:
            self.known[rows] = np.maximum(self.known[rows], self.usable[rows])

    def tmem_wait(self, cluster, split, kind: str) -> None:
        column = self.column(kind, split.warp)
        rows = self.rows(split)
        self.clocks[rows, column] = self.usable[rows, column - self.threads] = self.agent(column).count


def most(matrix: np.ndarray, rows) -> np.ndarray:
    """The maximum of rows, which ascend, or a copy of one row."""
    if not isinstance(rows, np.ndarray):
        return matrix[rows].copy()
    return _most(matrix, int(rows[0]), int(rows[-1]) + 1) if _dense(rows) else matrix[rows].max(0)


def least(matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The minimum of rows, which ascend."""
    return _least(matrix, int(rows[0]), int(rows[-1]) + 1) if _dense(rows) else matrix[rows].min(0)


def rows_copy(matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A copy of rows, which ascend."""
    return matrix[rows[0] : rows[-1] + 1].copy() if _dense(rows) else matrix[rows]


def _dense(rows: np.ndarray) -> bool:
    return len(rows) > 0 and int(rows[-1]) - int(rows[0]) == len(rows) - 1


@njit(cache=True)
def _most(matrix, first, last):
    out = matrix[first].copy()
    for r in range(first + 1, last):
        for i in range(len(out)):
            out[i] = max(out[i], matrix[r, i])
    return out


@njit(cache=True)
def _least(matrix, first, last):
    out = matrix[first].copy()
    for r in range(first + 1, last):
        for i in range(len(out)):
            out[i] = min(out[i], matrix[r, i])
    return out


@njit(cache=True)
def _raise_dense(matrix, first, last, values):
    for r in range(first, last):
        for i in range(len(values)):
            matrix[r, i] = max(matrix[r, i], values[i])


def _raise(matrix: np.ndarray, rows, values: np.ndarray) -> None:
    """Joins `values` into rows of a matrix that may have become wider since they were taken."""
    n = len(values)
    if not isinstance(rows, np.ndarray):
        row = matrix[rows, :n]
        np.maximum(row, values, out=row)
    elif _dense(rows):
        _raise_dense(matrix, int(rows[0]), int(rows[-1]) + 1, values)
    else:
        matrix[rows, :n] = np.maximum(matrix[rows, :n], values)
