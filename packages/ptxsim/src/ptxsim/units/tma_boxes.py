"""The boxes of tensor copies: where their rows are in shared memory, and their elements in global memory."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ptxsim.events.records import SharedSpan, Tensor
from ptxsim.isa.layouts.swizzle import Mode
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.im2col_map import Im2colMap
from ptxsim.machine.split import Lanes
from ptxsim.machine.tensor_box import CHUNK, chunk_place, pitch_of, swizzle_words
from ptxsim.machine.tensor_map import TensorMap
from ptxsim.units.tma_im2col import pieces


class Rows(NamedTuple):
    """Rows `first` to `last` (exclusive) of a box that starts at `offset` in shared memory."""

    offset: int
    inner: int  # bytes of a row
    swizzle: Mode
    first: int
    last: int


@functools.lru_cache(maxsize=4096)
def span_of(rank: int, rows: Rows) -> SharedSpan:
    """The chunks (rows, chunks per row) of some rows in the window of a CTA."""
    number, inner = np.arange(rows.first, rows.last)[:, None], np.arange(0, rows.inner, CHUNK)[None, :]
    layout = pitch_of(rows.inner, rows.swizzle), *swizzle_words(rows.swizzle)
    return SharedSpan.of(rank, chunk_place(rows.offset, *layout, number, inner) // CHUNK)


@functools.lru_cache(maxsize=4096)
def spans_of(ranks: tuple[int, ...], rows: Rows) -> tuple[SharedSpan, ...]:
    """`span_of` for each of these CTAs."""
    return tuple([span_of(rank, rows) for rank in ranks])


def box_index(tmap: Tensor, start: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(byte offset in the tensor's memory, whether it is inside the tensor) for every element of a box: two
    arrays (rows, inner elements).
    """
    size = tmap.dtype.itemsize
    offsets, inside = np.zeros(1, np.int64), np.ones(1, bool)
    for axis in reversed(range(tmap.rank)):
        position = start[axis] + np.arange(0, tmap.box[axis], tmap.element_strides[axis])
        step = size if axis == 0 else tmap.strides[axis - 1]
        good = (position >= 0) & (position < tmap.dims[axis])
        offsets = (offsets[:, None] + position * step).reshape(-1)
        inside = (inside[:, None] & good).reshape(-1)
    inner = -(-tmap.box[0] // tmap.element_strides[0])
    return offsets.reshape(-1, inner), inside.reshape(-1, inner)


# All or part of what an instruction copies: (map, coordinates of the box, its rows in shared memory).
Part = tuple[TensorMap, tuple[int, ...], Rows]


@functools.lru_cache(maxsize=4096)
def _whole(offset: int, inner: int, swizzle: Mode, count: int) -> Rows:
    return Rows(offset, inner, swizzle, 0, count)


def boxes(tmap: TensorMap, start: tuple[int, ...], offset: int) -> list[Part]:
    """The parts of an instruction with a tiled map: one box, or four rows."""
    if len(start) == len(tmap.dims):
        return [(tmap, start, _whole(offset, tmap.row_bytes, tmap.swizzle, tmap.rows))]
    column, *four = start
    return [
        (tmap, (column, row), Rows(offset, tmap.row_bytes, tmap.swizzle, i, i + 1))
        for i, row in enumerate(four)
    ]


def columns(
    cluster: Cluster, split: Lanes, tmap: Im2colMap, start: tuple[int, ...], offset: int, mode: str, offsets
) -> list[Part]:
    """The parts of an im2col copy: the runs of pixels that it takes. Empty, with a finding, if not legal."""
    first, parts = 0, []
    for tiled, at, count in pieces(cluster, split, tmap, start, mode, offsets) or []:
        parts.append((tiled, at, Rows(offset, tmap.row_bytes, tmap.swizzle, first, first + count)))
        first += count
    return parts


def end_of(parts: list[Part]) -> int:
    """The end of these parts in shared memory (last byte + 1); 0 for none."""
    if not parts:
        return 0
    return _end(parts[-1][2])


@functools.lru_cache(maxsize=4096)
def _end(rows: Rows) -> int:
    return span_of(0, rows._replace(first=0)).last + 1
