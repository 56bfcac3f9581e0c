"""Sparse A of tcgen05.mma.sp (PTX ISA 9.7.16.10.8): where its indices lie in tensor memory, what they say.

A row of A is cut into chunks, half of whose elements are stored; four bits a chunk say which. They are two
positions of two bits each: of elements where two of four are stored, of pairs of 4-bit elements where four of
eight are, of halves of an element where one of two tf32 is. For 128 rows a CTA:

* kinds of 8 bits and less: row r in lane r, chunk 0 in the low bits of the first column, 16 chunks in two;
* f16 and tf32: 8 chunks in one column, of the two that begin at the address; the selector says which. Of 16
  rows, lane i (below 8) has chunks 0-3 of row i in its low half, of row i + 8 in its high half; lane i + 8
  has chunks 4-7 of the same rows.

The text leaves the layouts to figures 262-267. Those of M = 128 and 256 are as public libraries fill them
(JAX's Mosaic, CUTLASS). For 64 rows a CTA there is only the figure: that layout is not modelled.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ptxsim.isa.layouts.tables import table

ROWS = 128  # of A in one CTA
_TWO = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110)  # indices that mean something
_ONE = (0b0100, 0b1110)


def narrow(a_type: str) -> bool:
    """Whether the indices of a row take 32 bits, not 64."""
    return a_type in ("f16", "bf16", "tf32")


@lru_cache(maxsize=4)
def index_places(a_type: str) -> tuple[np.ndarray, ...]:
    """(lane, column, lowest bit) of the index of [row, chunk]: int64[128, chunks] each."""
    row = np.arange(ROWS)[:, None]
    if not narrow(a_type):
        column, place = np.divmod(np.arange(16)[None, :], 8)
        return table(row, column, 4 * place)
    upper, place = np.divmod(np.arange(8)[None, :], 4)
    return table(row // 16 * 16 + upper * 8 + row % 8, 0, row // 8 % 2 * 16 + 4 * place)


def index_columns(a_type: str, column: int, selector: int) -> tuple[int, int]:
    """(first column, columns) that an instruction reads."""
    return (column + selector, 1) if narrow(a_type) else (column, 2)


def indices(cells: np.ndarray, a_type: str, first: int) -> np.ndarray:
    """uint32 (128, chunks) from cells (128, columns) of tensor memory; ValueError for one without meaning."""
    lane, column, low = index_places(a_type)
    found = cells[lane, first + column] >> low.astype(np.uint32) & np.uint32(15)
    good = np.isin(found, _ONE if a_type == "tf32" else _TWO)
    if not good.all():
        row, chunk = (int(x[0]) for x in np.nonzero(~good))
        raise ValueError(f"metadata of row {row}, chunk {chunk}: {found[row, chunk]:#06b} means nothing")
    return found


def expanded(stored: np.ndarray, positions: np.ndarray, a_type: str) -> np.ndarray:
    """(rows, 2 K) of A with its zeros, from the (rows, K) elements that are stored."""
    rows, chunks = positions.shape
    if a_type == "tf32":  # the first half of an element says which
        first, parts = (positions & 3)[..., None] // 2, stored.reshape(rows, chunks, 1, 1)
        out = np.zeros((rows, chunks, 2, 1), stored.dtype)
    else:
        first, parts = np.stack([positions & 3, positions >> 2], -1), stored.reshape(rows, chunks, 2, -1)
        out = np.zeros((rows, chunks, 4, parts.shape[3]), stored.dtype)
    np.put_along_axis(out, first[..., None].astype(np.int64), parts, axis=2)
    return out.reshape(rows, -1)
