"""Sparse A: layout and meaning of its indices, in tensor memory for tcgen05.mma.sp (PTX ISA 9.7.16.10.8), in
registers for mma.sp and wgmma (9.7.14.6, 9.7.15.6), for which CUTLASS (ELayout) says what PTX has in figures.

A row of A is divided into chunks, half of whose elements are stored; four bits per chunk say which. They are
two positions of two bits each: positions of elements if two of four are stored, of pairs of 4-bit elements if
four of eight are stored, of halves of an element if one of two tf32 is stored. For 128 rows per CTA:

* kinds of 8 bits and less: row r is in lane r, with 16 chunks in two columns, chunk 0 in the low bits of the
  first one;
* f16 and tf32: 8 chunks are in one of the two columns that start at the address; the selector says in which.
  Of 16 rows, lane i (below 8) has chunks 0-3 of row i in its low half, and those of row i + 8 in its high
  half; lane i + 8 has chunks 4-7 of the same rows.

The PTX ISA gives the layouts only in figures 262-267. Those for M = 128 and 256 are the ones that public
libraries use (JAX's Mosaic, CUTLASS). For 64 rows per CTA there is only the figure; that layout is not
modelled.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ptxsim.isa.layouts.tables import table

ROWS = 128  # of A in one CTA
FIRST = 0b0100  # a valid index of every type
_TWO = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110)  # the valid indices
_ONE = (0b0100, 0b1110)


def narrow(a_type: str) -> bool:
    """Whether the indices of a row take 32 bits instead of 64."""
    return a_type in ("f16", "bf16", "tf32")


@lru_cache(maxsize=4)
def index_places(a_type: str) -> tuple[np.ndarray, ...]:
    """(lane, column, lowest bit) of the index for [row, chunk]: int64[128, chunks] each."""
    row = np.arange(ROWS)[:, None]
    if not narrow(a_type):
        column, place = np.divmod(np.arange(16)[None, :], 8)
        return table(row, column, 4 * place)
    upper, place = np.divmod(np.arange(8)[None, :], 4)
    return table(row // 16 * 16 + upper * 8 + row % 8, 0, row // 8 % 2 * 16 + 4 * place)


def chunk_width(bits: int) -> int:
    """Elements of a chunk, given the bits of an element."""
    return {4: 8, 32: 2}.get(bits, 4)


@lru_cache(maxsize=32)
def warp_places(chunks: int, bits: int, selector: int) -> np.ndarray:
    """32 * lane + lowest bit of the index for [row, chunk] of the 16 rows of a warp: int64[16, chunks]."""
    row, chunk = np.arange(16)[:, None], np.arange(chunks)[None, :]
    if bits >= 16:
        thread, bit = chunk // 4, row // 8 * 16 + chunk % 4 * 4
    else:
        thread, bit = row // 8 + chunk // 8 * 2, chunk % 8 * 4
    return table(32 * (row % 8 * 4 + selector * chunks // 4 + thread) + bit)[0]


def index_columns(a_type: str, column: int, selector: int) -> tuple[int, int]:
    """(first column, number of columns) that an instruction reads."""
    return (column + selector, 1) if narrow(a_type) else (column, 2)


def indices(cells: np.ndarray, a_type: str, first: int) -> np.ndarray:
    """The indices in cells (128, columns) of tensor memory: uint32 (128, chunks)."""
    lane, column, low = index_places(a_type)
    return cells[lane, first + column] >> low.astype(np.uint32) & np.uint32(15)


def undefined(found: np.ndarray, a_type: str) -> np.ndarray:
    """Which indices have no meaning: bool, in their shape."""
    return ~np.isin(found, _ONE if a_type == "tf32" else _TWO)


def expanded(stored: np.ndarray, positions: np.ndarray, a_type: str) -> np.ndarray:
    """A with its zeros, (rows, 2 K), from the (rows, K) stored elements."""
    rows, chunks = positions.shape
    if a_type == "tf32":  # the position of the first half of an element gives its position
        first, parts = (positions & 3)[..., None] // 2, stored.reshape(rows, chunks, 1, 1)
        out = np.zeros((rows, chunks, 2, 1), stored.dtype)
    else:
        first, parts = np.stack([positions & 3, positions >> 2], -1), stored.reshape(rows, chunks, 2, -1)
        out = np.zeros((rows, chunks, 4, parts.shape[3]), stored.dtype)
    np.put_along_axis(out, first[..., None].astype(np.int64), parts, axis=2)
    return out.reshape(rows, -1)
