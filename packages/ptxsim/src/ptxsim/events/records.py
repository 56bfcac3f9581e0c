"""What units report of their work: frozen, typed records, made by the unit that knows.

Listeners read them and decode no instruction. A footprint is made once for each set of operands of an
instruction and is the same object from then on: its identity stands for its contents.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ptxsim.events.views import Place, Split
from ptxsim.isa.layouts.swizzle import Mode


class Rectangle(NamedTuple):
    """Cells of the tensor memory of a CTA. It may extend beyond the last lane or column, which the unit
    reports.
    """

    rank: int  # of the CTA in its cluster
    lane: int
    lanes: int
    column: int
    columns: int

    @property
    def block(self) -> tuple:
        """Its index in an array (CTAs, lanes, columns)."""
        lanes = slice(self.lane, self.lane + self.lanes)
        return self.rank, lanes, slice(self.column, self.column + self.columns)


def rectangles(rank: int, lanes: np.ndarray, column: int, columns: int) -> list[Rectangle]:
    """The columns of these lanes, in as few rectangles as there are runs of lanes."""
    runs = np.split(lanes, np.flatnonzero(np.diff(lanes) != 1) + 1)
    return [Rectangle(rank, int(run[0]), len(run), column, columns) for run in runs]


@dataclass(frozen=True, slots=True, eq=False)
class SharedSpan:
    """Chunks of 16 bytes of the shared memory of a CTA, by number; or `first` to `last` inside of one."""

    rank: int
    chunks: np.ndarray  # int64, of any shape
    first: int  # byte of the window
    last: int

    @classmethod
    def of(cls, rank: int, chunks: np.ndarray) -> SharedSpan:
        return cls(rank, chunks, int(chunks.min()) * 16, int(chunks.max()) * 16 + 15)

    @staticmethod
    @functools.lru_cache(maxsize=4096)
    def run(rank: int, first: int, size: int) -> SharedSpan:
        """This many consecutive bytes: whole chunks, or a part of one."""
        last = first + size - 1
        return SharedSpan(rank, np.arange(first >> 4, (last >> 4) + 1), first, last)

    @property
    def inside(self) -> bool:
        """Whether it is only a part of a chunk."""
        return self.last - self.first < 15


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """What one instruction of a tensor core touches, with these operands."""

    ranks: tuple[int, ...]  # the CTAs that take part
    reads: tuple[SharedSpan, ...] = ()
    cells_read: tuple[Rectangle, ...] = ()
    cells_written: tuple[Rectangle, ...] = ()
    tile: tuple[int, int] | None = None  # rows and columns of the product in all CTAs; None: it moves data
    descriptors: tuple[int, ...] = ()  # matrix descriptors of a product's operands
    label: str = ""  # in a timeline


@dataclass(frozen=True, slots=True, eq=False)
class TmemCells:
    """Cells of the tensor memory of a CTA that a warp's tcgen05.ld or st takes, an array index each."""

    rank: int
    lanes: np.ndarray  # (registers, 32); (2, registers, 32) where a register holds two columns
    columns: np.ndarray
    lane_ends: tuple[int, int]  # first and last
    column_ends: tuple[int, int]
    block: tuple[slice, slice] | None  # (columns, lanes), if they are all of a block, each in its place

    @classmethod
    def of(cls, rank: int, lanes: np.ndarray, columns: np.ndarray) -> TmemCells:
        lane_ends, column_ends = [(int(x.min()), int(x.max())) for x in (lanes, columns)]
        own = slice(column_ends[0], column_ends[1] + 1), slice(lane_ends[0], lane_ends[1] + 1)
        column, lane = np.ogrid[own]
        whole = np.array_equal(lanes, lane + 0 * column) and np.array_equal(columns, column + 0 * lane)
        return cls(rank, lanes, columns, lane_ends, column_ends, own if whole else None)

    @property
    def index(self) -> tuple[np.ndarray, np.ndarray]:
        """In an array (lanes, columns) of this CTA."""
        return self.lanes, self.columns

    def held(self, memory: np.ndarray) -> np.ndarray:
        """What they hold, of `memory` (lanes, columns): for use at once, as it may be a part of that."""
        return memory[self.index] if self.block is None else memory.T[self.block]

    def put(self, memory: np.ndarray, values: np.ndarray) -> None:
        if self.block is None:
            memory[self.index] = values
        else:
            memory.T[self.block] = values


class TensorWork(NamedTuple):
    """What a tensor core executes in order with the others of its thread (PTX ISA 9.7.16.6.2)."""

    name: str  # "tcgen05.mma"
    text: str  # "an MMA"
    where: Split  # who issued it
    group: int  # of .cta_group
    task: Any  # what it does, in its unit's own form: others read only the footprint
    accumulates: bool = False  # adds to what its cells hold
    partial: bool = False  # leaves out some lanes

    @property
    def footprint(self) -> Footprint:
        return self.task.footprint


class Tensor(Protocol):
    """A tensor in global memory as a copy sees it; plain bytes are one of one dimension."""

    name: str
    array: np.ndarray
    dims: tuple[int, ...]
    box: tuple[int, ...]
    strides: tuple[int, ...]  # bytes, of dimensions 1..
    element_strides: tuple[int, ...]
    dtype: np.dtype
    byte_offset: int  # of the first element
    swizzle: Mode
    segment: int  # of global memory
    at: int  # where its map lies, if a kernel can write that; else 0

    @property
    def rank(self) -> int: ...
    @property
    def box_bytes(self) -> int: ...

    def box_text(self, start: tuple[int, ...]) -> str: ...
    def holds(self, start: tuple[int, ...]) -> bool: ...
    def misses(self, start: tuple[int, ...]) -> bool: ...


class BulkCopy(NamedTuple):
    """What TMA, cp.async.bulk, st.async and the like copy, as one piece of asynchronous work."""

    kind: str  # "load": its bytes count on mbarriers; "store": it belongs to a bulk group of its thread
    tensor: Tensor  # that a load reads and a store writes; empty where it is no global memory
    start: tuple[int, ...]  # of its box there, innermost first
    offset: int  # where it begins in the window of each CTA
    size: int  # bytes, of each target
    source: SharedSpan | None  # shared memory that it reads
    targets: tuple[SharedSpan, ...] = ()  # that it writes, one a CTA
    barriers: tuple[Place, ...] = ()  # that hear of its bytes, one a target
    reduces: bool = False  # combines them with what is there

    @property
    def ranks(self) -> list[int]:
        """CTAs whose shared memory a load fills, or a store reads."""
        return [span.rank for span in self.targets or (self.source,) if span is not None]

    @property
    def copies(self) -> bool:
        """Whether it copies memory; otherwise its bytes come from registers or from the grid's scheduler."""
        return self.source is not None or self.tensor.array.size > 0


# ---- threads ----


class Fence(NamedTuple):
    """What a fence orders for its threads (PTX ISA 9.7.13.4)."""

    threads: bool  # accesses before it, against those of other threads
    shared_proxy: bool  # what was written to shared memory, against what the async proxy does there
    global_proxy: bool  # the same of global memory
    inits: bool  # mbarrier.init, against the uses of other threads, even if these synchronise relaxed


class BarArrival(NamedTuple):
    """A warp arrives at a CTA barrier."""

    number: int
    threads: int | None  # that it takes part with; None: all of the CTA
    waits: bool  # not so bar.arrive


class Arrival(NamedTuple):
    """Threads arrive on an mbarrier; none of them arrives after the one that completes the phase."""

    lanes: int  # mask
    place: Place
    arrivals: int  # that they make
    releases: bool  # hands on what they did: .release, at a scope in which the barrier's CTA is
    announces: int | None = None  # bytes that the phase is to expect as well


class PhaseWait(NamedTuple):
    """Threads look whether a phase of an mbarrier is complete."""

    lanes: int  # mask
    place: Place
    parity: int  # of the phase
    acquires: bool  # takes on what was released to it


class Commit(NamedTuple):
    """A tcgen05.commit: it arrives on barriers when the work that its thread has issued is done."""

    barriers: tuple[Place, ...]


class CopyArrival(NamedTuple):
    """A cp.async.mbarrier.arrive: each lane arrives when the copies that it has issued are done."""

    places: tuple[Place, ...]  # one a lane
    counted: bool  # the phase waits for it in addition to its count; .noinc does not
