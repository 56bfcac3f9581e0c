"""Fragments of wmma (PTX ISA 9.7.14.4.1): which thread holds which matrix element in which register.

The ISA leaves the position of an element to the chip. Here it is the one that ptxas 13.0 uses for sm_80,
sm_90a and sm_100a (read from its SASS): a fragment consists of the fragments of the mma.sync instructions
that make up the product, one after another. m16n16k16 is two m16n8k16 side by side, m32n8k16 two on top of
each other; m8n32k16 is computed as its transpose, two m16n8k16 whose A is B. Row-major and column-major
matrices have the same fragment. Multiplicands of f16 have eight registers for every shape, which hold their
elements two or four times.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ptxsim.isa.layouts.fragments import mma_a, mma_b, mma_d
from ptxsim.isa.layouts.tables import table

HALVES = 16  # f16 elements in eight registers
_TRANSPOSED = (8, 32)  # m, n
_OTHER = {"a": "b", "b": "a"}


@lru_cache(maxsize=64)
def wmma_fragment(
    which: str, shape: tuple[int, int, int], bits: int, copies: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of matrix "a" (m x k), "b" (k x n) or "c" (m x n; D is the same): int64 [32, elements].

    shape: (m, n, k); bits: of an element of A and B; copies: repeat the elements of an f16 multiplicand as
    often as its registers hold them.
    """
    m, n, k = shape
    if (m, n) == _TRANSPOSED:
        column, row = _upright(_OTHER.get(which, which), n, m, k, bits)
    else:
        row, column = _upright(which, m, n, k, bits)
    times = HALVES // row.shape[1] if copies else 1
    return table(np.tile(row, (1, times)), np.tile(column, (1, times)))


def _upright(which: str, m: int, n: int, k: int, bits: int):
    """The fragments of mma.sync, for blocks of A of 16 rows (8 if m is 8) and of B of 8 columns."""
    high = min(m, 16)
    if which == "a":
        row, column = mma_a(high, k, bits)
        blocks = [(high * i, 0) for i in range(m // high)]
    elif which == "b":
        row, column = mma_b(k, 8, bits)
        blocks = [(0, 8 * j) for j in range(n // 8)]
    else:
        row, column = mma_d(high, 8)
        blocks = [(high * i, 8 * j) for i in range(m // high) for j in range(n // 8)]
    rows, columns = ([part + block[axis] for block in blocks] for axis, part in enumerate((row, column)))
    return np.concatenate(rows, axis=1), np.concatenate(columns, axis=1)
