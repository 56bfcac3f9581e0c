"""Records in which units report their work: frozen and typed, made by the unit that does the work.

Listeners read them and need not decode instructions. A footprint is made once for each set of operands of an
instruction and reused as the same object: equal identity means equal contents.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ptxsim.events.views import Place, Split
from ptxsim.isa.layouts.swizzle import Mode


class Rectangle(NamedTuple):
    """A rectangle of a CTA's tensor memory. May exceed the last lane or column, which the unit reports."""

    rank: int  # of the CTA in its cluster
    lane: int
    lanes: int
    column: int
    columns: int

    @property
    def block(self) -> tuple:
        """Its index into an array (CTAs, lanes, columns)."""
        lanes = slice(self.lane, self.lane + self.lanes)
        return self.rank, lanes, slice(self.column, self.column + self.columns)


def rectangles(rank: int, lanes: np.ndarray, column: int, columns: int) -> list[Rectangle]:
    """These columns of these lanes as rectangles, one for each run of consecutive lanes."""
    runs = np.split(lanes, np.flatnonzero(np.diff(lanes) != 1) + 1)
    return [Rectangle(rank, int(run[0]), len(run), column, columns) for run in runs]


@dataclass(frozen=True, slots=True, eq=False)
class SharedSpan:
    """16-byte chunks of a CTA's shared memory, by number; or bytes `first` to `last` inside one chunk."""

    rank: int
    chunks: np.ndarray  # int64, of any shape
    first: int  # byte of the window
    last: int
    swizzle: Mode | None = None  # by which a matrix descriptor says that it is arranged

    @classmethod
    def of(cls, rank: int, chunks: np.ndarray, swizzle: Mode | None = None) -> SharedSpan:
        return cls(rank, chunks, int(chunks.min()) * 16, int(chunks.max()) * 16 + 15, swizzle)

    @staticmethod
    @functools.lru_cache(maxsize=4096)
    def run(rank: int, first: int, size: int) -> SharedSpan:
        """A span of `size` consecutive bytes: whole chunks, or a part of one."""
        last = first + size - 1
        return SharedSpan(rank, np.arange(first >> 4, (last >> 4) + 1), first, last)

    @property
    def inside(self) -> bool:
        """Whether the span is only a part of a chunk."""
        return self.last - self.first < 15


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """A or B of a product, as far as it lies in one CTA's shared memory."""

    side: str  # "a" or "b"
    rank: int
    chunks: np.ndarray  # as in a SharedSpan, but each as often as it is read
    kind: str  # type of its elements
    rows: int  # M or N
    mn: bool  # M or N is contiguous
    negated: bool = False  # by a bit of the instruction descriptor


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """The memory that one tensor-core instruction touches, for one set of operands."""

    ranks: tuple[int, ...]  # the CTAs that take part
    reads: tuple[SharedSpan, ...] = ()
    cells_read: tuple[Rectangle, ...] = ()
    cells_written: tuple[Rectangle, ...] = ()
    tile: tuple[int, int] | None = None  # rows and columns of the product over all CTAs; None: data movement
    descriptors: tuple[int, ...] = ()  # matrix descriptors of a product's operands
    factors: tuple[Operand, ...] = ()  # of a product, in shared memory
    label: str = ""  # in a timeline


@dataclass(frozen=True, slots=True, eq=False)
class TmemCells:
    """Cells of a CTA's tensor memory that a warp's tcgen05.ld or st accesses, as one index array per axis."""

    rank: int
    lanes: np.ndarray  # (registers, 32); (2, registers, 32) where a register holds two columns
    columns: np.ndarray
    lane_ends: tuple[int, int]  # first and last
    column_ends: tuple[int, int]
    block: tuple[slice, slice] | None  # (columns, lanes) if the cells are a whole block, in order

    @classmethod
    def of(cls, rank: int, lanes: np.ndarray, columns: np.ndarray) -> TmemCells:
        lane_ends, column_ends = [(int(x.min()), int(x.max())) for x in (lanes, columns)]
        own = slice(column_ends[0], column_ends[1] + 1), slice(lane_ends[0], lane_ends[1] + 1)
        column, lane = np.ogrid[own]
        whole = np.array_equal(lanes, lane + 0 * column) and np.array_equal(columns, column + 0 * lane)
        return cls(rank, lanes, columns, lane_ends, column_ends, own if whole else None)

    @property
    def index(self) -> tuple[np.ndarray, np.ndarray]:
        """The index into an array (lanes, columns) of this CTA."""
        return self.lanes, self.columns

    def held(self, memory: np.ndarray) -> np.ndarray:
        """The cells' contents in `memory` (lanes, columns). Use them at once: they may be a view of it."""
        return memory[self.index] if self.block is None else memory.T[self.block]

    def put(self, memory: np.ndarray, values: np.ndarray) -> None:
        if self.block is None:
            memory[self.index] = values
        else:
            memory.T[self.block] = values


class TensorWork(NamedTuple):
    """Work that a tensor core executes in order with the other work of its thread (PTX ISA 9.7.16.6.2)."""

    name: str  # "tcgen05.mma"
    text: str  # "an MMA"
    where: Split  # who issued it
    group: int  # CTAs: .cta_group::1 or ::2
    task: Any  # in its unit's own form; others only read its footprint
    accumulates: bool = False  # adds to the contents of its cells
    partial: bool = False  # leaves out some lanes

    @property
    def footprint(self) -> Footprint:
        return self.task.footprint


class Tensor(Protocol):
    """A tensor in global memory as a copy sees it; plain bytes are a tensor with one dimension."""

    name: str
    array: np.ndarray
    dims: tuple[int, ...]
    box: tuple[int, ...]
    strides: tuple[int, ...]  # bytes, of dimensions 1..
    element_strides: tuple[int, ...]
    dtype: np.dtype
    padded: int  # bytes of 16 in shared memory that hold elements; 0: all
    byte_offset: int  # of the first element
    swizzle: Mode
    segment: int  # of global memory
    at: int  # address of its tensor map, if a kernel can write it; else 0

    @property
    def rank(self) -> int: ...
    @property
    def box_bytes(self) -> int: ...

    def box_text(self, start: tuple[int, ...]) -> str: ...
    def holds(self, start: tuple[int, ...]) -> bool: ...
    def misses(self, start: tuple[int, ...]) -> bool: ...
    def offset_of(self, at: tuple[int, ...]) -> int: ...


class BulkCopy(NamedTuple):
    """What TMA, cp.async.bulk, st.async and the like copy as one piece of asynchronous work."""

    kind: str  # "load": its bytes count on mbarriers; "store": it belongs to a bulk group of its thread
    tensor: Tensor  # read by a load, written by a store; empty if not in global memory
    start: tuple[int, ...]  # of its box in the tensor, innermost dimension first
    offset: int  # its start in each CTA's shared window
    size: int  # bytes per target
    source: SharedSpan | None  # shared memory that it reads
    targets: tuple[SharedSpan, ...] = ()  # shared memory that it writes, one per CTA
    barriers: tuple[Place, ...] = ()  # that count its bytes, one per target
    reduces: bool = False  # combines the bytes with those in memory

    @property
    def ranks(self) -> list[int]:
        """CTAs whose shared memory a load fills or a store reads."""
        return [span.rank for span in self.targets or (self.source,) if span is not None]

    @property
    def copies(self) -> bool:
        """Whether it copies memory; otherwise its bytes come from registers or from the grid's scheduler."""
        return self.source is not None or self.tensor.array.size > 0


# ---- threads ----


class Fence(NamedTuple):
    """What a fence orders for its threads (PTX ISA 9.7.13.4)."""

    threads: bool  # earlier accesses, with regard to those of other threads
    shared_proxy: bool  # writes to shared memory, with regard to the async proxy's accesses
    global_proxy: bool  # the same for global memory
    inits: bool  # mbarrier.init, with regard to other threads' uses, even after a relaxed barrier
    near: bool = False  # its scope is a CTA or a cluster
    sc: bool = False  # it has a place in the Fence-SC order (8.9.4)


class BarArrival(NamedTuple):
    """A warp arrives at a CTA barrier."""

    number: int
    threads: int | None  # that the barrier expects; None: all of the CTA
    waits: bool  # False for bar.arrive


class Arrival(NamedTuple):
    """Threads arrive on an mbarrier; none of them arrives after the arrival that completes the phase."""

    lanes: int  # mask
    place: Place
    arrivals: int  # how many they make
    releases: bool  # .release, at a scope that includes the barrier's CTA
    announces: int | None = None  # bytes added to the phase's tx-count


class PhaseWait(NamedTuple):
    """Threads test whether a phase of an mbarrier is complete."""

    lanes: int  # mask
    place: Place
    parity: int  # of the phase
    acquires: bool  # sees what was released to the barrier


class Commit(NamedTuple):
    """A tcgen05.commit: it arrives on barriers when all work that its thread has issued is done."""

    barriers: tuple[Place, ...]


class CopyArrival(NamedTuple):
    """A cp.async.mbarrier.arrive: each lane arrives when the copies that it has issued are done."""

    places: tuple[Place, ...]  # one per lane
    counted: bool  # adds to the phase's pending count; False with .noinc
