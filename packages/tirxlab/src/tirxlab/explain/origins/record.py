"""An observer that follows a few elements of D back: to the store, the thread that wrote the value, the
column of tensor memory from which it was read, and the rows of A and B that were multiplied into it.

The operands of MMAs are read from shared memory as they run and identified in A and B by their bytes, however
they got there. A thread's registers are not followed: a stored number is taken to be the last equal one (in
D's dtype) that the thread has read from tensor memory.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ptxsim.observing import (
    Observer,
    box_index,
    bytecode,
    is_shared,
    operands,
    shared_place,
)
from tirxlab.explain.origins.chunks import CHUNK, Chunks, row_codes

NOBODY = -1
_COLUMNS = 512  # of a CTA's tensor memory
_READS = 128  # how many reads of a warp are remembered

Element = tuple[int, int]  # row and column of D


class Product(NamedTuple):
    """MMAs that ran together."""

    number: int
    line: int | None
    cluster: int
    a: np.ndarray  # codes of the chunks of A's rows, (M, chunks)
    b: np.ndarray  # of B's


class Cell(NamedTuple):
    """A place in tensor memory."""

    rank: int
    lane: int
    column: int


class Sum(NamedTuple):
    """The sum of products in a column of tensor memory; columns that MMAs fill together share one object."""

    products: tuple[Product, ...]
    row: int  # of the product in lane 0
    column: int  # first column of tensor memory

    def is_like(self, product: Product, column: int) -> bool:
        """Whether an added product has the same shape and first column, so that its cells match."""
        shape = len(self.products[-1].a), len(self.products[-1].b), self.column
        return shape == (len(product.a), len(product.b), column)


class Read(NamedTuple):
    """A warp's tcgen05.ld."""

    line: int | None
    lanes: np.ndarray  # (registers, 32)
    columns: np.ndarray
    values: np.ndarray  # float32
    sums: dict[int, Sum]  # by column


@dataclass
class Stored:
    """How an element of D got its value, as far as it was seen."""

    line: int | None  # of the store
    by_tma: bool
    value: float
    beside: float | None  # the next number in D's row, if available
    cluster: int
    thread: int = NOBODY  # thread of the cluster that wrote it to shared memory, or stored it
    placed: int | None = None  # line of the write to shared memory
    read: Read | None = None
    cell: Cell | None = None
    sum: Sum | None = None
    reads: int = 0  # how many reads of tensor memory its warp has made before
    offered: list[tuple[Read, Cell]] = field(default_factory=list)  # reads of the right sum by this thread


class Made(NamedTuple):
    """Where the product that an element should hold was made."""

    product: int  # number of the Product
    cluster: int
    line: int | None
    cell: Cell
    place: tuple[int, int]  # row and column in the product

    def is_in(self, sums: dict[int, Sum]) -> bool:
        """Whether the sums that were read (by column) hold the product in its column."""
        found = sums.get(self.cell.column)
        return found is not None and any(one.number == self.product for one in found.products)


class Load(NamedTuple):
    """A TMA load from A or B."""

    line: int | None
    matrix: int
    rows: tuple[int, int]
    cluster: int


@dataclass
class Followed:
    """All that was seen of one element."""

    stored: Stored | None = None
    made: list[Made] = field(default_factory=list)  # where its product was made, whole or in part
    readers: dict[Cell, set[int | None]] = field(default_factory=lambda: defaultdict(set))


class Origins(Observer):
    """Follows `elements` in all clusters. `A`, `B`, `D`: names of the arrays; matrices: A and B."""

    def __init__(self, _launch, _index: int, names: tuple[str, str, str], matrices, elements: list[Element]):
        self.names = names
        self.dtype = matrices[0].dtype
        self.depth, self.width = matrices[0].shape[1], len(matrices[1])  # K, N
        self.chunks = Chunks(*matrices)
        self.followed = {element: Followed() for element in elements}
        count = self.depth * self.dtype.itemsize // CHUNK
        self.wanted = {(r, c): (row_codes(0, r, count), row_codes(1, c, count)) for r, c in elements}
        self.loads: list[Load] = []
        self.count = 0  # of products
        self.odd = False  # something happened that is not followed; then nothing is reported

    def start(self, cluster) -> None:
        self.sums: dict[tuple[int, int], Sum] = {}  # (rank, column)
        self.reads: dict[int, deque] = defaultdict(lambda: deque(maxlen=_READS))
        shape = cluster.ctas, cluster.shared.shape[1] // 2
        self.writer, self.row = np.full(shape, NOBODY), np.full(shape, NOBODY)

    def timeline(self, _costs) -> Origins:
        return self

    # ---- products ----

    def tensor_execute(self, cluster: Any, works: list) -> None:
        first = works[0]
        if first.footprint.tile is None or any(work.partial for work in works):
            self.odd = True
            return
        a, b = (self.chunks.of(side) for side in operands(cluster, works))
        self.count += 1
        product = Product(self.count, first.where.instr.src, cluster.index, a, b)
        for cells in first.footprint.cells_written:
            self._add(cells, product, first.accumulates, first.footprint.ranks)

    def _add(self, cells, product: Product, accumulates: bool, ranks: tuple[int, ...]) -> None:
        height = len(product.a) // len(ranks)
        if (cells.lane, cells.lanes, cells.columns) != (0, height, len(product.b)) or height != 128:
            self.odd = True  # a layout in which lane i does not hold row i
            return
        row = ranks.index(cells.rank) * height
        known: dict[int, Sum] = {}
        for column in range(cells.column, min(cells.column + cells.columns, _COLUMNS)):
            before = self.sums.get((cells.rank, column)) if accumulates else None
            made = known.get(id(before))
            if made is None:
                kept = before.products if before else ()
                self.odd |= before is not None and not before.is_like(product, cells.column)
                made = known[id(before)] = Sum((*kept, product), row, cells.column)
            self.sums[cells.rank, column] = made
        self._note_made(cells, product, row)

    def _note_made(self, cells, product: Product, row: int) -> None:
        for element, followed in self.followed.items():
            wanted_a, wanted_b = self.wanted[element]
            lanes = np.flatnonzero(np.isin(product.a[row : row + 128], wanted_a).all(1))
            columns = np.flatnonzero(np.isin(product.b, wanted_b).all(1))
            for lane, column in [(lane, column) for lane in lanes for column in columns]:
                cell = Cell(cells.rank, int(lane), cells.column + int(column))
                own = product.number, product.cluster, product.line
                followed.made.append(Made(*own, cell, (row + int(lane), int(column))))

    def tmem_access(self, cluster: Any, split, cells, write: bool) -> None:
        if write:  # these columns no longer hold products
            for column in np.unique(cells.columns).tolist():
                self.sums.pop((cells.rank, column), None)
            return
        values = cluster.tmem[cells.rank].floats[cells.index].reshape(-1, 32).copy()
        lanes, columns = (x.reshape(-1, 32) for x in cells.index)
        own = {
            c: self.sums[cells.rank, c] for c in np.unique(columns).tolist() if (cells.rank, c) in self.sums
        }
        line = split.instr.src
        self.reads[split.warp].append(Read(line, lanes, columns, values, own))
        for followed in self.followed.values():
            for made in followed.made:
                here = made.cluster == cluster.index and made.cell.rank == cells.rank and made.is_in(own)
                if here and ((lanes == made.cell.lane) & (columns == made.cell.column)).any():
                    followed.readers[made.cell].add(line)

    # ---- copies ----

    def copy_write(self, cluster, token, copy) -> None:
        if copy.kind != "load" or copy.tensor.name not in self.names[:2]:
            return
        tensor = copy.tensor
        offsets, inside = box_index(tensor, copy.start)
        if inside.any():
            rows = (offsets[inside] + tensor.byte_offset) // self.dtype.itemsize // self.depth
            ends = int(rows.min()), int(rows.max()) + 1
            self.loads.append(Load(token, self.names.index(tensor.name), ends, cluster.index))

    def copy_issue(self, cluster, split, copy) -> int | None:
        return split.instr.src

    def copy_read(self, cluster, token, copy) -> None:
        """A TMA store reads its bytes from shared memory."""
        if copy.source is None or copy.kind != "store" or copy.tensor.name != self.names[2]:
            return
        offsets, inside = box_index(copy.tensor, copy.start)
        numbers = np.where(inside, (offsets + copy.tensor.byte_offset) // self.dtype.itemsize, NOBODY)
        chunks = copy.source.chunks.reshape(len(numbers), -1)
        for (r, c), followed in self.followed.items():
            at = np.argwhere(numbers == r * self.width + c)
            if len(at) and self.dtype.itemsize == 2:
                row, inner = at[0].tolist()
                half = int(chunks[row, inner // 8]) * 8 + inner % 8
                rank = copy.source.rank
                value, beside = cluster.shared[rank].view(self.dtype)[half : half + 2].tolist()
                thread = int(self.writer[rank, half])
                stored = Stored(
                    token,
                    True,
                    value,
                    beside if inner % 8 < 7 else None,
                    cluster.index,
                    thread,
                    self._line(cluster, self.row[rank, half]),
                )
                followed.stored = self._back(cluster, stored, (r, c))

    def accesses(self, cluster, log: np.ndarray) -> None:
        written = log[log[:, bytecode.LOG_SIZE] & 1 == 1]
        inside = is_shared(written[:, bytecode.LOG_PLACE])
        self._put(written[inside])
        self._stored(cluster, written[~inside])

    def _put(self, log: np.ndarray) -> None:
        """Threads write to shared memory."""
        rank, offset = shared_place(log[:, bytecode.LOG_PLACE])
        half = offset // 2
        size = (log[:, bytecode.LOG_SIZE] & bytecode.LOG_SIZE_MASK) >> 1
        for part in range(-(-int(size.max(initial=0)) // 2)):
            of = size > 2 * part
            at = rank[of], np.minimum(half[of] + part, self.writer.shape[1] - 1)
            self.writer[at], self.row[at] = log[of, bytecode.LOG_THREAD], log[of, bytecode.LOG_ROW]

    def _stored(self, cluster, log: np.ndarray) -> None:
        """Threads store to D themselves."""
        if not len(log):
            return
        memory = cluster.launch.memory
        base = memory.rows[memory.names.index(self.names[2])][0]
        size = (log[:, bytecode.LOG_SIZE] & bytecode.LOG_SIZE_MASK) >> 1
        for (r, c), followed in self.followed.items():
            place = base + (r * self.width + c) * self.dtype.itemsize
            hits = log[(log[:, bytecode.LOG_PLACE] <= place) & (place < log[:, bytecode.LOG_PLACE] + size)]
            for row, thread in hits[-1:, [bytecode.LOG_ROW, bytecode.LOG_THREAD]].tolist():
                value = float(memory.view(place, self.dtype.itemsize).view(self.dtype)[0])
                stored = Stored(self._line(cluster, row), False, value, None, cluster.index, thread)
                followed.stored = self._back(cluster, stored, (r, c))

    # ---- the way back ----

    @staticmethod
    def _line(cluster, row: int) -> int | None:
        return cluster.program.instrs[row].src if row != NOBODY else None

    def _back(self, cluster, stored: Stored, element: Element) -> Stored:
        """`stored` with the tensor memory read that its number came from, and the reads of the right sum."""
        if stored.thread == NOBODY:
            return stored
        warp, lane = divmod(stored.thread, 32)
        rank, stored.reads = warp // cluster.warps_per_cta, len(self.reads[warp])
        made = [made for made in self.followed[element].made if made.cluster == cluster.index]
        for read in reversed(self.reads[warp]):
            with np.errstate(over="ignore"):
                numbers = read.values[:, lane].astype(self.dtype).astype(np.float64)
            same = np.flatnonzero((numbers == stored.value) | (np.isnan(numbers) & np.isnan(stored.value)))
            if stored.beside is not None:  # among 256 numbers two are sometimes equal, pairs hardly ever
                pairs = [n for n in same.tolist() if [*numbers[n + 1 : n + 2]] == [stored.beside]]
                same = np.array(pairs or same, np.int64)
            places = zip(read.lanes[:, lane].tolist(), read.columns[:, lane].tolist(), strict=True)
            cells = [Cell(rank, *place) for place in places]
            if same.size and stored.read is None:
                stored.read, stored.cell = read, cells[int(same[0])]
                stored.sum = read.sums.get(stored.cell.column)
            wanted = {one.cell for one in made if one.is_in(read.sums)}
            stored.offered += [(read, cell) for cell in cells if cell in wanted]
        return stored
