"""Which elements of D depend on which part of an operand of tcgen05.mma, in a pair of CTAs too."""

from __future__ import annotations

import numpy as np
import pytest

from ptxsim.isa.layouts.descriptors import MatrixDescriptor, encode_matrix_descriptor
from ptxsim.units.tcgen05_product import Product, decode, elements_fed

A, B = (encode_matrix_descriptor(MatrixDescriptor(at, 128, 256, 0)) for at in (1024, 1024 + 4096))


def fed(m: int, n: int, group: int, rank: int, byte: int, transposed: bool = False) -> tuple[set, set, set]:
    """CTAs, lanes and columns that depend on a byte of the operands, which start at 0 (A) and 4096 (B)."""
    bits = 1 << 4 | (n >> 3) << 17 | (m >> 4) << 24 | transposed << 15
    form = bits, "f16", group, False, 0, False, False
    shape, _ = decode(*form)
    assert shape is not None
    product = Product(form, shape, 0, tuple(range(group)), A, B, 0, 64, (), -1)
    chunk = (1024 + byte) // 16
    found = elements_fed(product, lambda span: (span.chunks == chunk) & (span.rank == rank))
    ctas, lanes, columns = (set(np.unique(axis).tolist()) for axis in found)
    return ctas, lanes, {c - 64 for c in columns}


@pytest.mark.parametrize(
    ("m", "group", "rank", "byte", "expected"),
    [
        (128, 1, 0, 256 + 16, ({0}, {9}, range(32))),  # row 9 of A
        (128, 1, 0, 4096 + 256 + 16, ({0}, range(128), {9})),  # row 9 of B
        (64, 1, 0, 2 * 256, ({0}, {32}, range(32))),  # row 16, in lane 32
        (256, 2, 1, 256 + 16, ({1}, {9}, range(32))),
        (256, 2, 1, 4096 + 16, ({0, 1}, range(128), {17})),  # CTA 1 has rows 16 to 31 of B
        (128, 2, 1, 256 + 16, ({1}, {9, 64 + 9}, range(16))),  # columns 16 to 31 are in lanes from 64 on
        (128, 2, 1, 4096 + 16, ({0, 1}, range(64, 128), {1})),
        (128, 2, 0, 4096 + 16, ({0, 1}, range(64), {1})),
        (128, 1, 0, 4096 + 1024, (set(), set(), set())),  # behind B
    ],
)
def test_elements(m, group, rank, byte, expected):
    assert fed(m, 32, group, rank, byte) == tuple(map(set, expected))


def test_chunks_of_eight_rows():
    """A is stored with M innermost: a chunk has 8 rows of one k."""
    (lanes,) = [lanes for _, lanes, _ in [fed(128, 32, 1, 0, 128, transposed=True)]]
    assert len(lanes) == 8
    assert lanes in [set(range(at, at + 8)) for at in range(0, 128, 8)]
