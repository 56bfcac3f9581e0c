"""What each MMA of one cluster was made of, and what became of its product: the recorder, following bytes.

A copy that nobody multiplies, or a product that nobody reads, is work for show. `Flow` notes for each MMA the
TMA loads whose bytes it read, and whether its sum was read out of tensor memory. `Doubled` is an experiment:
some sums are read out as twice what they are; what of D is then not twice as large did not come from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ptxsim.observing import (
    OFFSET_MASK,
    RANK_SHIFT,
    SHARED_BASE,
    Observer,
    Recorder,
    bytecode,
    is_shared,
)
from ptxsim.tracing import Costs, Timeline

NOBODY, THREADS = -1, -2  # writers of shared memory that are no TMA load; NOBODY also: no sum of MMAs
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


@dataclass
class Traced(Timeline):
    """A timeline whose events are also tied by data. Keys and values are numbers of events."""

    fed: dict[int, set[int]] = field(default_factory=dict)  # MMA -> TMA loads whose bytes it read
    fresh: set[int] = field(default_factory=set)  # MMAs that overwrote what tensor memory held
    read_out: set[int] = field(default_factory=set)  # MMAs whose sum a thread read
    held: int = 0  # cells of tensor memory that held a sum which was read, in all CTAs of the cluster


class Flow(Recorder):
    """The recorder, and who wrote the bytes that the tensor core reads."""

    def __init__(self, launch, index: int = 0):
        super().__init__(launch, index)
        self.placed: dict[int, tuple] = {}  # id of an issued MMA -> (it, its events by rank of the pair)
        self.fed: dict[int, set[int]] = {}
        self.fresh: set[int] = set()
        self.sums: list[list[int]] = []  # events of the MMAs that added up
        self.summed: set[int] = set()  # numbers of the sums that were read

    def start(self, cluster) -> None:
        super().start(cluster)
        if cluster.index == self.index:
            self.writers = np.full((cluster.ctas, cluster.shared.shape[1] // 16), NOBODY)
            self.owners = np.full((cluster.ctas, *_CELLS), NOBODY)  # number of the sum in a cell
            self.holding = np.zeros((cluster.ctas, *_CELLS), bool)  # cells whose sum was read

    # ---- who wrote shared memory ----

    def accesses(self, cluster, log: np.ndarray) -> None:
        super().accesses(cluster, log)
        if cluster.index == self.index:
            place = log[:, bytecode.LOG_PLACE]
            written = place[is_shared(place) & (log[:, bytecode.LOG_SIZE] & 1 == 1)] - SHARED_BASE
            self.writers[written >> RANK_SHIFT, (written & OFFSET_MASK) >> 4] = THREADS

    def copy_write(self, cluster, token, copy) -> None:
        super().copy_write(cluster, token, copy)
        for span in copy.targets if cluster.index == self.index and copy.copies else ():
            self.writers[span.rank, span.chunks.ravel()] = token

    # ---- what the tensor core made of it ----

    def tensor_issue(self, cluster, split, work) -> None:
        super().tensor_issue(cluster, split, work)
        if cluster.index == self.index and work.footprint.tile:
            self.placed[id(work)] = work, self.multiplied[split.thread]

    def tensor_execute(self, cluster, works: list) -> None:
        super().tensor_execute(cluster, works)
        for work in works if cluster.index == self.index else ():
            _, events = self.placed.pop(id(work), (work, ()))
            for event, rank in zip(events, work.footprint.ranks, strict=False):
                self.fed[event] = self._sources(work, rank)
                self._add_up(cluster, work, rank, event)

    def _sources(self, work, rank: int) -> set[int]:
        """The TMA loads whose bytes an MMA reads in one CTA."""
        found = set()
        for span in work.footprint.reads:
            if span.rank == rank:
                inside = span.chunks[(span.chunks >= 0) & (span.chunks < self.writers.shape[1])]
                found.update(np.unique(self.writers[rank, inside]).tolist())
        return found - {NOBODY, THREADS}

    def _add_up(self, cluster, work, rank: int, event: int) -> None:
        """The sum that an MMA goes into: a new one, if it overwrites, or adds to zeros."""
        for block in [cell.block for cell in work.footprint.cells_written if cell.rank == rank]:
            held = _values(self.owners[block]) if work.accumulates else []
            if not work.accumulates or (held == [NOBODY] and not cluster.tmem[rank].cells[block[1:]].any()):
                held = [len(self.sums)]
                self.sums.append([])
                self.owners[block] = held[0]
                self.fresh.add(event)
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
        else:
            owners = self.owners[place]
            self.summed.update(_values(owners))
            self.holding[place] |= owners != NOBODY

    def timeline(self, costs: Costs) -> Traced:
        """The events in the order of the run: replay.py gives them times."""
        read_out = {event for number in self.summed - {NOBODY} for event in self.sums[number]}
        made = Traced(self.events, [], 0, costs, self.finished, self.index)
        held = int(self.holding.sum())
        return replace(made, fed=self.fed, fresh=self.fresh, read_out=read_out, held=held)


def _values(cells: np.ndarray) -> list[int]:
    """The different numbers in some cells, ascending; mostly there is one."""
    one = cells.flat[0]
    return [int(one)] if (cells == one).all() else np.unique(cells).tolist()


class Doubled(Flow):
    """Threads read some sums as twice their value. `chosen(events, mmas, lane)` says whether the sum of these
    MMAs is among them, when the warp `lane` reads. Of the record it keeps who issued which MMA.
    """

    def __init__(self, launch, index: int, chosen: Callable[[list, list, str], bool]):
        super().__init__(launch, index)
        self.chosen = chosen
        self.changed: tuple | None = None

    def tmem_access(self, cluster, split, cells, write: bool) -> None:
        self._restore()
        super().tmem_access(cluster, split, cells, write)
        if cluster.index == self.index and not write:
            place = (cells.rank, *cells.index)
            self._double(cluster.tmem[cells.rank].cells, place, self._warp(split))

    def tensor_execute(self, cluster, works: list) -> None:
        self._restore()
        super().tensor_execute(cluster, works)

    def _sources(self, op, rank: int) -> set[int]:
        return set()  # nobody asks here

    def _warp(self, split) -> str:
        return f"warp {split.warp % self.warps_per_cta}"

    def _double(self, memory: np.ndarray, place: tuple, lane: str) -> None:
        owners = self.owners[place]
        numbers = [
            number
            for number in _values(owners)
            if number != NOBODY and self.chosen(self.events, self.sums[number], lane)
        ]
        if numbers:
            old = memory[place[1:]]
            with np.errstate(over="ignore", invalid="ignore"):
                twice = (old.view(np.float32) * 2).view(np.uint32)
            memory[place[1:]] = np.where(np.isin(owners, numbers), twice, old)
            self.changed = memory, place[1:], old

    def _restore(self) -> None:
        """The cells as they were before the last read."""
        if self.changed:
            memory, place, old = self.changed
            memory[place], self.changed = old, None


for _unheard in (*_BARRIERS, *_COPIES):
    setattr(Doubled, _unheard, getattr(Observer, _unheard))
