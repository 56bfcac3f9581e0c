"""Which thread holds which matrix element in which register: mma.sync, wgmma, ldmatrix, stmatrix, movmatrix.

A fragment is a pair of int64 arrays (row, column), both [thread, element]. Elements are numbered through a
thread's registers from low to high, `32 // bits` per register (one per register for f64). Results are cached
and read-only.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ptxsim.isa.layouts.tables import table


def _lanes(elements: int, bits: int):
    """(group, thread in group, register, position in it, elements per register) of a warp's elements."""
    per = max(1, 32 // bits)
    lane, element = np.arange(32)[:, None], np.arange(elements)[None, :]
    return lane // 4, lane % 4, element // per, element % per, per


@lru_cache(maxsize=64)
def mma_a(m: int, k: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(row, k) of matrix A (m x k) of mma.sync, m = 8 or 16: [32, m * k / 32]. PTX ISA 9.7.14.5.

    All shapes but m8n8k4 of f16, for which see `volta_ab`.
    """
    group, thread, register, place, per = _lanes(m * k // 32, bits)
    halves = m // 8  # registers alternate between rows 0-7 and 8-15, then move on along k
    return table(group + 8 * (register % halves), thread * per + place + 4 * per * (register // halves))


@lru_cache(maxsize=64)
def mma_b(k: int, n: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(k, column) of matrix B (k x n, n = 8) of mma.sync: [32, k * n / 32]."""
    group, thread, register, place, per = _lanes(k * n // 32, bits)
    return table(thread * per + place + 4 * per * register, group)


@lru_cache(maxsize=16)
def mma_d(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of C and D (m x n, n = 8) of mma.sync: [32, m * n / 32]. The same for every type."""
    lane, element = np.arange(32)[:, None], np.arange(m * n // 32)[None, :]
    return table(lane // 4 + 8 * (element // 2), lane % 4 * 2 + element % 2)


@lru_cache(maxsize=2)
def volta_ab(across: bool) -> tuple[np.ndarray, ...]:
    """(product, row of A or column of B, k) of m8n8k4 in f16, four products: [32, 4]. PTX ISA 9.7.14.5.1.

    across: whether a thread's elements lie across K: A is .col, B is .row.
    """
    lane, i = np.arange(32)[:, None], np.arange(4)[None, :]
    mine, other = (i, lane % 4) if across else (lane % 4, i)
    return table(lane % 16 // 4, mine + lane // 16 * 4, other)


@lru_cache(maxsize=2)
def volta_d(wide: bool) -> tuple[np.ndarray, np.ndarray]:
    """(8 * product + row, column) of C and D of m8n8k4, which are f16 or (wide) f32: [32, 8]."""
    lane, i = np.arange(32)[:, None], np.arange(8)[None, :]
    row, column = (
        (lane % 2 + i // 2 % 2 * 2, i // 4 * 4 + lane // 2 % 2 * 2 + i % 2) if wide else (lane % 4, i)
    )
    return table(8 * (lane % 16 // 4) + row + lane // 16 * 4, column)


@lru_cache(maxsize=64)
def wgmma_a(k: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(row, k) of matrix A (64 x k) of wgmma in registers: [128, k / 2], thread of the warpgroup first."""
    row, column = mma_a(16, k, bits)
    return table(_per_warp(row), np.tile(column, (4, 1)))


@lru_cache(maxsize=64)
def wgmma_d(n: int) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of D (64 x n) of wgmma: [128, n / 2]. PTX ISA 9.7.15.5.1.1."""
    lane, element = np.arange(32)[:, None], np.arange(n // 2)[None, :]
    row = lane // 4 + 8 * (element // 2 % 2)
    column = lane % 4 * 2 + element % 2 + 8 * (element // 4)
    return table(_per_warp(row), np.tile(column, (4, 1)))


def _per_warp(row: np.ndarray) -> np.ndarray:
    """The rows of four warps, 16 apart, given the rows of one warp."""
    return np.concatenate([row + 16 * warp for warp in range(4)])


@lru_cache(maxsize=16)
def ldmatrix(num: int, transpose: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(matrix, row, column) of every 16-bit half of ldmatrix / stmatrix .m8n8.x`num`.b16: [32, 2 * num].

    Row r of matrix i starts at the address given by thread 8 * i + r. PTX ISA 9.7.14.5.15-16.
    """
    lane, half = np.arange(32)[:, None], np.arange(2 * num)[None, :]
    row, column = lane // 4, lane % 4 * 2 + half % 2
    return table(half // 2, column, row) if transpose else table(half // 2, row, column)


@lru_cache(maxsize=1)
def movmatrix() -> tuple[np.ndarray, np.ndarray]:
    """(thread, half) from which each 16-bit half of movmatrix.m8n8.trans.b16 comes: [32, 2]."""
    _, row, column = ldmatrix(1, transpose=True)
    return table(row * 4 + column // 2, column % 2)
