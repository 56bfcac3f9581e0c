"""What a tcgen05.mma computes from its operands, and which memory it accesses (PTX ISA 9.7.16.9, 9.7.16.10).

A Product is made once for each combination of operand values, and shared by all executions with these values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxsim.events.records import Footprint, Operand, Rectangle, SharedSpan, rectangles
from ptxsim.isa.layouts import sparsity
from ptxsim.isa.layouts.block_scale import decode_block_scaled
from ptxsim.isa.layouts.descriptors import InstructionDescriptor, decode_instruction_descriptor
from ptxsim.isa.layouts.tmem import data_path, operand_layout, result_layout
from ptxsim.isa.number_formats import DECODERS
from ptxsim.machine.tensor_memory import COLUMNS, LANES, split_address
from ptxsim.units.matrix_operands import K_BYTES, operand_chunks
from ptxsim.units.tcgen05_columns import ColumnMask, column_mask
from ptxsim.units.tcgen05_result import result_blocks
from ptxsim.units.tcgen05_scales import scale_columns
from ptxsim.units.tcgen05_sparse import metadata_columns


@dataclass(frozen=True, eq=False)
class Product:
    """An MMA with its operand values; only the thread, and whether it adds to D, are not part of it."""

    form: tuple  # arguments of `decode`
    shape: InstructionDescriptor
    cta: int  # rank of the issuing CTA
    ranks: tuple[int, ...]  # of the participating CTAs
    a: Any  # descriptor (int), or ("tmem", column) of A in tensor memory
    b: int
    lane: int  # of D
    column: int
    scales: tuple[int, ...]  # addresses of the scale factors of A and B
    metadata: int  # address of the indices of a sparse A, or -1
    disabled: tuple[int, ...] = ()  # masks of output lanes that are not written
    d_scale: int = 0  # D as an input is divided by 2 to this
    mask: int = 0  # zero-column mask of .ws

    @functools.cached_property
    def group(self) -> int:
        return self.form[2]

    @functools.cached_property
    def ws(self) -> bool:
        """Weight stationary (.ws), which has its own layouts of D and A in tensor memory."""
        return self.form[3]

    @functools.cached_property
    def shift(self) -> bool:
        """.ashift: row i of A is row i + 1 in tensor memory."""
        return self.form[6]

    @functools.cached_property
    def key(self) -> tuple:
        """Equal for products that may execute as one."""
        at = self.group, self.cta, self.lane, self.column
        return (self.shape, *at, self.disabled, self.ws, self.shift, self.mask)

    @functools.cached_property
    def never_merged(self) -> bool:
        """Whether it always executes by itself."""
        return bool(self.scales) or self.metadata >= 0

    @functools.cached_property
    def footprint(self) -> Footprint:
        operands = self.a, self.b, self.lane, self.column, self.scales, self.metadata, (), 0, self.mask
        return footprint(self.form, self.ranks, operands)

    @functools.cached_property
    def columns(self) -> ColumnMask | None:
        """The columns of B that a zero-column mask leaves; None if it leaves all."""
        return column_mask(self.mask, self.shape.m, self.shape.n, self.form[0]) if self.mask else None

    @functools.cached_property
    def partial(self) -> bool:
        return any(self.disabled)

    def k_bytes(self, side: str) -> int:
        """Bytes of a row of operand "a" or "b"."""
        return K_BYTES * (2 if self.metadata >= 0 and side == "b" else 1)

    @functools.cached_property
    def copies(self) -> int:
        """Number of parts of N that are computed in different lanes, each from its own copy of A."""
        return {"B": 2, "E": 2, "G": 4}.get(data_path(self.shape.m, self.group, self.ws), 1)


@functools.lru_cache(maxsize=256)
def decode(
    bits: int, kind: str, group: int, ws: bool, factors: int, sparse: bool, shift: bool
) -> tuple[InstructionDescriptor | None, tuple[str, str, str]]:
    """(decoded instruction descriptor, unused), or (None, the finding) if it is not legal or not modelled."""
    try:
        if factors:
            shape: InstructionDescriptor = decode_block_scaled(bits, kind, factors, group)
        else:
            shape = decode_instruction_descriptor(bits, kind, group, ws)
    except ValueError as error:
        return None, ("descriptor", "error", str(error))
    except NotImplementedError as error:
        return None, ("unsupported", "incomplete", f"tcgen05.mma: {error} is not modelled")
    if shape.sparse != sparse:
        message = f"tcgen05.mma{'.sp' * sparse} with a descriptor whose bit 2 (sparse) is {shape.sparse:d}"
        return None, ("descriptor", "error", message)
    if shift and shape.m not in (128, 256):
        return None, ("descriptor", "error", f"tcgen05.mma.ashift with M={shape.m}; expected 128 or 256")
    what = "saturation" if shape.saturate else ""
    if sparse and shape.m // group != sparsity.ROWS:
        what = f"a sparse A of {shape.m // group} rows in each CTA"
    if what:
        return None, ("unsupported", "incomplete", f"tcgen05.mma: {what} is not modelled")
    return shape, ("", "", "")


@functools.lru_cache(maxsize=2048)
def footprint(form: tuple, ranks: tuple[int, ...], operands: tuple) -> Footprint:
    """The footprint of an instruction. form: arguments of `decode`; operands: A, B, and what else a
    Product has.
    """
    shape, (a, b, lane, column, *_) = decode(*form)[0], operands
    assert shape is not None  # a form that was issued
    product = Product(form, shape, ranks[0], ranks, *operands)
    columns = [*scale_columns(product), *metadata_columns(product)]
    read = [r for rank in ranks for r in _cells_of_a(product, rank)]
    read += [Rectangle(rank, 0, LANES, first, count) for rank in ranks for first, count in columns]
    written = [
        Rectangle(rank, lane + first, rows, column + start, count)
        for rank in ranks
        for first, _, rows, start, _, count in result_blocks(shape.m, shape.n, product.group, product.ws)
    ]
    sides = [(rank, side, _operand_span(product, rank, side)) for rank in ranks for side in "ab"]
    label = f"MMA {shape.m}x{shape.n} to column {column}"
    descriptors = tuple(bits for bits in (a, b) if isinstance(bits, int))
    reads = tuple(span for *_, span in sides if span is not None)
    multiplied = tuple(
        Operand(side, rank, span.chunks, kind, rows, mn, negated)
        for rank, side, span in sides
        for _, rows, mn, kind, negated in [side_of(product, side)]
        if span is not None
    )
    extent = shape.m, shape.n
    return Footprint(ranks, reads, tuple(read), tuple(written), extent, descriptors, multiplied, label)


def _operand_span(product: Product, rank: int, side: str) -> SharedSpan | None:
    """The shared memory that is read for A or B; None if it is in tensor memory or its descriptor is not
    legal.
    """
    bits, rows, mn, fmt, _ = side_of(product, side)
    if isinstance(bits, tuple):
        return None
    try:
        mask = product.columns if side == "b" else None
        return _span(rank, bits, rows, DECODERS[fmt].bytes, mn, product.k_bytes(side), mask)
    except ValueError:
        return None  # reported when the operand is read


@functools.lru_cache(maxsize=2048)
def _span(
    rank: int, bits: int, rows: int, width: int, mn: bool, k_bytes: int, mask: ColumnMask | None
) -> SharedSpan | None:
    per = 16 // width if mn else 1
    rows = mask.rows(per) if mask else rows
    chunks = operand_chunks((bits,), rows, width, mn, k_bytes=k_bytes)
    index = mask.chunks(chunks.index, per) if mask else chunks.index
    return SharedSpan.of(rank, index, chunks.swizzle) if index.size else None


def elements_fed(product: Product, counts: Callable[[SharedSpan], np.ndarray]) -> tuple[np.ndarray, ...]:
    """(CTA, lane, column) of the elements of D that depend on the chunks of shared memory that count."""
    shape = product.shape
    rows, columns = _lines_fed(product, "a", counts), _lines_fed(product, "b", counts)
    place = result_layout(shape.m, shape.n, product.group, product.ws)
    cta, lane, column = (axis[rows[:, None] | columns] for axis in place)
    lane, column = lane + product.lane, column + product.column
    inside = (lane < LANES) & (column < COLUMNS)
    return np.array(product.ranks)[cta[inside]], lane[inside], column[inside]


def _lines_fed(product: Product, side: str, counts: Callable[[SharedSpan], np.ndarray]) -> np.ndarray:
    """bool: the rows of A, or columns of B, over all CTAs, that have a chunk that counts."""
    _, each, mn, *_ = side_of(product, side)
    found = []
    for rank in product.ranks:
        span = _operand_span(product, rank, side)
        lines = np.zeros(1, bool) if span is None else np.any(counts(span), axis=0 if mn else 1)
        exact = len(lines) > 1 and not product.columns
        found.append(lines.repeat(each // len(lines)) if exact else np.full(each, lines.any()))
    return np.concatenate(found)


def _cells_of_a(product: Product, rank: int) -> list[Rectangle]:
    """The cells of tensor memory that are read for A; empty if A is in shared memory."""
    if not isinstance(product.a, tuple):
        return []
    lanes = np.concatenate([operand_lanes(product, part) for part in range(product.copies)])
    return rectangles(rank, lanes, split_address(product.a[1])[1], K_BYTES // 4)


def pair(group: int, cta: int, ctas: int) -> tuple[int, ...]:
    """Ranks of the participating CTAs: the CTA itself, or the pair of ranks that differ in the last bit."""
    return (cta,) if group == 1 else tuple(r for r in (cta & ~1, cta | 1) if r < ctas)


def side_of(product: Product, which: str) -> tuple:
    """(location, rows in a CTA, MN-major?, type, negated?) of A or B."""
    s = product.shape
    if which == "a":
        return product.a, s.m // product.group, s.a_mn_major, s.a_type, s.negate_a
    return product.b, s.n // product.group, s.b_mn_major, s.b_type, s.negate_b


@functools.lru_cache(maxsize=4096)
def operand_lanes(product: Product, part: int) -> np.ndarray:
    """Lanes of tensor memory with the rows of one CTA's A, for a part of N; may exceed the last lane."""
    rows, group = product.shape.m, product.group
    lane = operand_layout(rows, 1, 1, group, product.ws)[1][: rows // group, 0]
    lane = lane + part * (LANES // product.copies) + split_address(product.a[1])[0]
    return np.append(lane[1:], lane[-1]) if product.shift else lane


@functools.lru_cache(maxsize=4096)
def operand_index(product: Product, part: int) -> slice | np.ndarray:
    """The lanes of `operand_lanes` as an index: a slice, which reads faster, if they are consecutive."""
    lanes = operand_lanes(product, part)
    first, last = int(lanes[0]), int(lanes[-1])
    return slice(first, last + 1) if np.array_equal(lanes, np.arange(first, last + 1)) else lanes
