"""Follows the bytes of one cluster: where the operands of each MMA came from, and who read its product.

A copy that nobody multiplies, or a product that nobody reads, is work for show. `Flow` notes for each MMA the
TMA loads whose bytes it read, and whether its sum was read out of tensor memory. For a warp that reads shared
memory it notes the writes that it waited for: a flag in memory orders as a barrier does. `Halved` is an
experiment: some sums are read out as half of their value; numbers of D that are then not half as large did
not come from them. It also weighs what the tensor core multiplies: products of numbers other than those of A
and B have another weight.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ptxsim.observing import (
    Observer,
    Recorder,
    bytecode,
    is_shared,
    operands,
    shared_place,
)
from ptxsim.tracing import Costs, Timeline

NOBODY, THREADS = -1, -2  # writers of shared memory other than TMA loads; NOBODY also marks cells of no sum
_CELLS = 128, 512  # lanes and columns of a CTA's tensor memory
_BARRIERS = (
    *("bar_arrive", "bar_complete", "cluster_arrive", "cluster_complete", "cluster_wait", "async_arrive"),
    *("mbarrier_init", "mbarrier_arrive", "mbarrier_wait", "mbarrier_blocked", "phase_complete"),
    *("cp_async_arrive", "commit_issue"),
)
_COPIES = (
    "copy_issue",
    "copy_write",
    "bulk_commit",
    "bulk_wait",
    "cp_async_issue",
    "cp_async_wait",
    "accesses",
)
_WORD = 4  # bytes of shared memory for which one last writer is kept


class Held(NamedTuple):
    """A sum in tensor memory, from the event of its first MMA to that of its last read."""

    begin: int
    end: int
    cells: int
    macs: float  # multiply-adds with two numbers that are not 0


@dataclass
class Traced(Timeline):
    """A timeline with the data flow between its events. Keys and values are numbers of events."""

    fed: dict[int, set[int]] = field(default_factory=dict)  # MMA -> TMA loads whose bytes it read
    read_out: set[int] = field(default_factory=set)  # MMAs whose sum a thread read
    sums: list[list[int]] = field(default_factory=list)  # the MMAs of each sum that a thread read
    held: list[Held] = field(default_factory=list)  # the cells and the lifetime of each such sum
    room: int = 0  # bytes of shared memory that loads filled and MMAs read, in the CTA with the most
    full: dict[int, float] = field(default_factory=dict)  # MMA -> part of its products without a zero factor
    taken: int = 0  # numbers that threads read from sums that are not all zeros, counted at every read
    weight: float = 0.0  # of all products that were read out, if they were weighed


class Flow(Recorder):
    """A recorder that also tracks who wrote the bytes that the tensor core reads."""

    def __init__(self, launch, index: int = 0):
        super().__init__(launch, index)
        self.placed: dict[int, tuple] = {}  # id of an issued MMA -> (the MMA, its events by rank in the pair)
        self.fed: dict[int, set[int]] = {}
        self.full: dict[int, float] = {}
        self.sums: list[list[int]] = []  # for each sum, the events of its MMAs
        self.cells: list[int] = []  # for each sum, how many cells hold it
        self.summed: dict[int, int] = {}  # number of a sum that was read -> event of the last read
        self.taken: dict[int, int] = defaultdict(int)  # number of a sum -> how many numbers were read from it

    def start(self, cluster) -> None:
        super().start(cluster)
        if cluster.index == self.index:
            self.writers = np.full((cluster.ctas, cluster.shared.shape[1] // 16), NOBODY)
            self.hands = np.full((cluster.ctas, cluster.shared.shape[1] // _WORD), NOBODY)  # writer's event
            self.owner = np.full(self.hands.shape, NOBODY)  # writer's warp
            self.filled = np.zeros(self.writers.shape, bool)  # filled by a load and read by an MMA
            self.owners = np.full((cluster.ctas, *_CELLS), NOBODY)  # number of the sum in a cell

    # ---- who wrote shared memory ----

    def accesses(self, cluster, log: np.ndarray) -> None:
        if cluster.index != self.index:
            return
        inside = log[is_shared(log[:, bytecode.LOG_PLACE])]
        self._wait_for_writers(cluster, inside)
        super().accesses(cluster, log)
        written = inside[inside[:, bytecode.LOG_SIZE] & 1 == 1]
        if not len(written):
            return
        rank, offset, warp = _where(written)
        self.writers[rank, offset >> 4] = THREADS
        size = (written[:, bytecode.LOG_SIZE] & bytecode.LOG_SIZE_MASK) >> 1
        last = np.full(len(warp), NOBODY)
        for w in _values(warp):
            last[warp == w] = self.last.get(w, NOBODY)
        for part in range(0, int(size.max(initial=0)), _WORD):
            of = size > part
            word = rank[of], np.minimum((offset[of] + part) // _WORD, self.hands.shape[1] - 1)
            self.hands[word], self.owner[word] = last[of], warp[of]

    def _wait_for_writers(self, cluster, inside: np.ndarray) -> None:
        """Records that a warp which accesses shared memory has waited for the warps that wrote there before.

        An atomic is logged as a write but also reads; plain writes to one place are ordered anyway.
        """
        rank, offset, warp = _where(inside)
        owner, hands = (of[rank, offset // _WORD] for of in (self.owner, self.hands))
        others = (owner != NOBODY) & (owner != warp)
        if not others.any():
            return
        for w in np.unique(warp[others]).tolist():
            mine = others & (warp == w)
            at = cluster.splits[w * 32].at(row=int(inside[mine, bytecode.LOG_ROW][0]))
            self.by_warp(at, "wait", "shared memory", np.unique(hands[mine]).tolist())

    def copy_write(self, cluster, token, copy) -> None:
        super().copy_write(cluster, token, copy)
        for span in copy.targets if cluster.index == self.index and copy.copies else ():
            self.writers[span.rank, span.chunks.ravel()] = token

    # ---- what the tensor core made of it ----

    def tensor_issue(self, cluster, split, work) -> None:
        super().tensor_issue(cluster, split, work)
        if cluster.index == self.index and work.footprint.tile:
            self.placed[id(work)] = work, self.multiplied[split.thread]

    def tensor_execute(self, cluster: Any, works: list) -> None:
        super().tensor_execute(cluster, works)
        if cluster.index != self.index:
            return
        events_of = [self.placed.pop(id(work), (work, ()))[1] for work in works]
        if not any(events_of):
            self._overwritten(works)
            return
        self._multiplied(events_of, *operands(cluster, works))
        for work, events in zip(works, events_of, strict=True):
            for event, rank in zip(events, work.footprint.ranks, strict=False):
                self.fed[event] = self._sources(work, rank)
                self._add_up(cluster, work, rank, event)

    def _overwritten(self, works: list) -> None:
        """Marks cells that a copy or a shift of rows overwrites: they no longer hold a sum of MMAs."""
        for cell in [cell for work in works for cell in work.footprint.cells_written]:
            self.owners[cell.block] = NOBODY

    def _multiplied(self, events_of: list, a: np.ndarray, b: np.ndarray) -> None:
        """Notes MMAs that multiply rows of `a` by rows of `b`, their operands side by side along K.

        `events_of`: the events of each MMA.
        """
        for events, part in zip(events_of, not_of_zeros(a, b, len(events_of)), strict=True):
            self.full |= dict.fromkeys(events, part)

    def _sources(self, work, rank: int) -> set[int]:
        """The TMA loads whose bytes an MMA reads in one CTA."""
        found: set[int] = set()
        for span in work.footprint.reads:
            if span.rank == rank:
                inside = span.chunks[(span.chunks >= 0) & (span.chunks < self.writers.shape[1])]
                writers = self.writers[rank, inside]
                self.filled[rank, inside] |= writers >= 0
                found.update(_values(writers) if len(writers) else ())
        return found - {NOBODY, THREADS}

    def _add_up(self, cluster, work, rank: int, event: int) -> None:
        """Adds an MMA to the sums in its cells; starts a new sum if it overwrites them or adds to zeros."""
        for block in [cell.block for cell in work.footprint.cells_written if cell.rank == rank]:
            held = _values(self.owners[block]) if work.accumulates else []
            if not work.accumulates or (held == [NOBODY] and not cluster.tmem[rank].cells[block[1:]].any()):
                held = [len(self.sums)]
                self.sums.append([])
                self.cells.append(self.owners[block].size)
                self.owners[block] = held[0]
            for number in held:
                if number != NOBODY:
                    self.sums[number].append(event)

    def tmem_access(self, cluster, split, cells, write: bool) -> None:
        super().tmem_access(cluster, split, cells, write)
        if cluster.index != self.index:
            return
        place = (cells.rank, *cells.index)
        if write:
            self.owners[place] = NOBODY
            return
        owners = self.owners[place]
        for number in _values(owners):
            self.summed[number] = len(self.events) - 1
            self.taken[number] += int(np.count_nonzero(owners == number))

    def timeline(self, costs: Costs) -> Traced:
        """The events in the order of the run: replay.py gives them times."""
        read = sorted(self.summed.keys() - {NOBODY})
        sums = [self.sums[number] for number in read]
        read_out = {event for one in sums for event in one if self.full[event]}
        useful = [number for number in read if read_out.intersection(self.sums[number])]
        made = Traced(self.events, [], 0, costs, self.finished, self.index)
        room = 16 * int(self.filled.sum(axis=1).max())
        made = replace(made, fed=self.fed, read_out=read_out, sums=sums, room=room, full=self.full)
        made.taken = sum(self.taken[number] for number in useful)
        return replace(made, held=[self._held(number) for number in read if self.sums[number]])

    def _held(self, number: int) -> Held:
        mine = self.sums[number]
        macs = sum(self.events[n].amount * self.full[n] for n in mine)
        return Held(min(mine), self.summed[number], self.cells[number], macs)


def _where(log: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(CTA, offset in its shared memory, warp) of each access."""
    return *shared_place(log[:, bytecode.LOG_PLACE]), log[:, bytecode.LOG_THREAD] // 32


def _values(cells: np.ndarray) -> list[int]:
    """The distinct numbers in some cells, ascending; usually there is one."""
    one = cells.flat[0]
    return [int(one)] if (cells == one).all() else np.unique(cells).tolist()


class Halved(Flow):
    """Threads read some sums scaled down: when the warp `lane` reads the sum of `mmas`, it is halved
    `halvings(events, mmas, lane)` times. `weights`: the weights of numbers, see `weigh`.
    """

    def __init__(self, launch, index: int, halvings: Callable[[list, list, str], int], weights: np.ndarray):
        super().__init__(launch, index)
        self.halvings, self.weights = halvings, weights
        self.weighed: dict[int, float] = {}  # MMA -> weight of its product
        self.changed: tuple | None = None

    def tmem_access(self, cluster, split, cells, write: bool) -> None:
        self._restore()
        super().tmem_access(cluster, split, cells, write)
        if cluster.index == self.index and not write:
            place = (cells.rank, *cells.index)
            self._halve(cluster.tmem[cells.rank].cells, place, self._warp(split))

    def tensor_execute(self, cluster, works: list) -> None:
        self._restore()
        super().tensor_execute(cluster, works)

    def _multiplied(self, events_of: list, a: np.ndarray, b: np.ndarray) -> None:
        super()._multiplied(events_of, a, b)
        for events, weight in zip(events_of, weigh(a, b, self.weights, len(events_of)), strict=True):
            self.weighed |= dict.fromkeys(events[:1], weight)

    def timeline(self, costs: Costs) -> Traced:
        made = super().timeline(costs)
        return replace(made, weight=math.fsum(self.weighed.get(event, 0.0) for event in made.read_out))

    def _warp(self, split) -> str:
        return f"warp {split.warp % self.warps_per_cta}"

    def _halve(self, memory: np.ndarray, place: tuple, lane: str) -> None:
        owners = self.owners[place]
        old, factor = memory[place[1:]], np.ones(owners.shape, np.float32)
        for number in _values(owners):
            if number != NOBODY and (times := self.halvings(self.events, self.sums[number], lane)):
                factor[owners == number] = 0.5**times
        changed = factor != 1
        if changed.any():
            with np.errstate(under="ignore", invalid="ignore"):
                less = (old.view(np.float32) * factor).view(np.uint32)
            memory[place[1:]] = np.where(changed, less, old)
            self.changed = memory, place[1:], old

    def _restore(self) -> None:
        """Restores the cells that the last read scaled down."""
        if self.changed:
            memory, place, old = self.changed
            memory[place], self.changed = old, None


class OnlyHalved(Halved):
    """`Halved` with a smaller record: only which warp issued which MMA."""

    def _sources(self, work, rank: int) -> set[int]:
        return set()  # not needed here


for _unheard in (*_BARRIERS, *_COPIES):
    setattr(OnlyHalved, _unheard, getattr(Observer, _unheard))


def not_of_zeros(a: np.ndarray, b: np.ndarray, parts: int = 1) -> list[float]:
    """The fraction of a product's multiply-adds that have no zero factor, for each of `parts` parts of K."""
    if a.shape[1] != b.shape[1]:  # a sparse A
        return [1.0] * parts
    one, other = (np.count_nonzero(side, axis=0) / len(side) for side in (a, b))
    return (one * other).reshape(parts, -1).mean(axis=1).tolist()


def weights(seed: int) -> np.ndarray:
    """A weight that nobody can guess for each float16 without its sign, indexed by its bits; 0 weighs 0."""
    made = np.random.default_rng([seed, 2]).random(1 << 15)
    made[0] = 0.0
    return made


def weigh(a: np.ndarray, b: np.ndarray, weights: np.ndarray, parts: int = 1) -> list[float]:
    """The weight of the product of rows of `a` and `b`, for each of `parts` equal parts of K: every product
    of two numbers counts as the product of their weights.

    The weight of a whole product does not depend on the parts, or the order of K, in which it is computed.
    """
    if a.shape[1] != b.shape[1]:  # a sparse A: never a product of two float16 matrices
        return [np.inf] * parts
    one, other = (weights[_bits(side)].sum(axis=0) for side in (a, b))
    return (one * other).reshape(parts, -1).sum(axis=1).tolist()


def _bits(side: np.ndarray) -> np.ndarray:
    """The bits of each number as float16 without its sign; a nonzero number too small for float16 gives 1."""
    with np.errstate(over="ignore"):
        bits = side.astype(np.float16).view(np.uint16) & 0x7FFF
    return np.maximum(bits, side != 0)
