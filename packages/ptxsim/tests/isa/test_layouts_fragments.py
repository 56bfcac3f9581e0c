"""ptxsim.layouts.fragments: ISA formulas shape by shape, bijection, TVM, and a product by parts."""

from __future__ import annotations

import numpy as np
import pytest

from ptxsim.isa.layouts.fragments import ldmatrix, mma_a, mma_b, mma_d, movmatrix, wgmma_a, wgmma_d

# (m, k, bits of an element): every m?n8k? of mma.sync but f16 m8n8k4
SHAPES = [
    *[(16, 8, 16), (16, 16, 16), (16, 4, 32), (16, 8, 32), (8, 16, 8), (16, 16, 8), (16, 32, 8)],
    *[(8, 32, 4), (16, 32, 4), (16, 64, 4), (8, 128, 1), (16, 128, 1), (16, 256, 1)],
    *[(8, 4, 64), (16, 4, 64), (16, 8, 64), (16, 16, 64)],
]


def one_to_one(row, column, rows, columns):
    pairs = row.astype(np.int64) * columns + column
    return pairs.size == rows * columns and set(pairs.flat) == set(range(rows * columns))


@pytest.mark.parametrize(("m", "k", "bits"), SHAPES)
def test_fragments_cover_their_matrices_once(m, k, bits):
    assert one_to_one(*mma_a(m, k, bits), m, k)
    assert one_to_one(*mma_b(k, 8, bits), k, 8)
    assert one_to_one(*mma_d(m, 8), m, 8)


@pytest.mark.parametrize(("k", "bits"), [(16, 16), (8, 32), (32, 8)])
def test_wgmma_fragments_cover_their_matrices_once(k, bits):
    assert one_to_one(*wgmma_a(k, bits), 64, k)
    for n in (8, 24, 128, 256):
        assert one_to_one(*wgmma_d(n), 64, n)


# PTX ISA 9.7.14.5.x, shape by shape: g = group, t = thread in group, i = element -> (row, column)
A_FORMULAS = {
    (16, 16, 16): lambda g, t, i: (
        g if 0 <= i < 2 or 4 <= i < 6 else g + 8,
        t * 2 + (i & 1) if i < 4 else t * 2 + (i & 1) + 8,
    ),
    (16, 8, 16): lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    (16, 4, 32): lambda g, t, i: (g if i == 0 else g + 8, t),
    (16, 8, 32): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4),
    (8, 16, 8): lambda g, t, i: (g, t * 4 + i),
    (16, 16, 8): lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
    (16, 32, 8): lambda g, t, i: (
        g if 0 <= i < 4 or 8 <= i < 12 else g + 8,
        t * 4 + (i & 3) if i < 8 else t * 4 + (i & 3) + 16,
    ),
    (8, 32, 4): lambda g, t, i: (g, t * 8 + i),
    (16, 32, 4): lambda g, t, i: (g if i < 8 else g + 8, t * 8 + (i & 7)),
    (16, 64, 4): lambda g, t, i: (
        g if 0 <= i < 8 or 16 <= i < 24 else g + 8,
        t * 8 + (i & 7) if i < 16 else t * 8 + (i & 7) + 32,
    ),
    (16, 128, 1): lambda g, t, i: (g if i < 32 else g + 8, t * 32 + (i & 31)),
    (16, 256, 1): lambda g, t, i: (
        g if 0 <= i < 32 or 64 <= i < 96 else g + 8,
        t * 32 + (i & 31) if i < 64 else t * 32 + (i & 31) + 128,
    ),
    (8, 4, 64): lambda g, t, i: (g, t),
    (16, 8, 64): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4),
    (16, 16, 64): lambda g, t, i: (g if i % 2 == 0 else g + 8, i * 2 + t if i % 2 == 0 else i * 2 - 2 + t),
}
B_FORMULAS = {
    (16, 16): lambda g, t, i: (t * 2 + (i & 1) if i < 2 else t * 2 + (i & 1) + 8, g),
    (8, 16): lambda g, t, i: (t * 2 + i, g),
    (8, 32): lambda g, t, i: (t if i == 0 else t + 4, g),
    (32, 8): lambda g, t, i: (t * 4 + (i & 3) if i < 4 else t * 4 + (i & 3) + 16, g),
    (64, 4): lambda g, t, i: (t * 8 + (i & 7) if i < 8 else t * 8 + (i & 7) + 32, g),
    (256, 1): lambda g, t, i: (t * 32 + (i & 31) if i < 32 else t * 32 + (i & 31) + 128, g),
    (16, 64): lambda g, t, i: (t + i * 4, g),
}


def check(found, formula):
    row, column = found
    for lane, i in np.ndindex(row.shape):
        assert (row[lane, i], column[lane, i]) == formula(lane >> 2, lane % 4, i)


@pytest.mark.parametrize("shape", A_FORMULAS)
def test_a_is_the_isa_formula(shape):
    check(mma_a(*shape), A_FORMULAS[shape])


@pytest.mark.parametrize("shape", B_FORMULAS)
def test_b_is_the_isa_formula(shape):
    k, bits = shape
    check(mma_b(k, 8, bits), B_FORMULAS[shape])


def test_d_is_the_isa_formula():
    check(mma_d(16, 8), lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)))
    check(mma_d(8, 8), lambda g, t, i: (g, t * 2 + i))


def test_wgmma_corners():
    """PTX ISA 9.7.15.5.1.1, figure of D: warp w owns rows 16w to 16w + 15."""
    row, column = wgmma_d(256)
    assert (row[0, :8].tolist(), column[0, :8].tolist()) == ([0, 0, 8, 8] * 2, [0, 1, 0, 1, 8, 9, 8, 9])
    assert (row[127, 127], column[127, 127]) == (63, 255) and (row[33, 2], column[33, 2]) == (24, 2)
    row, column = wgmma_a(16, 16)
    assert (row[37, 6], column[37, 6]) == (16 + 1 + 8, 2 + 8)


@pytest.mark.parametrize("num", (1, 2, 4))
def test_ldmatrix(num):
    matrix, row, column = ldmatrix(num)
    assert sorted(set(matrix.flat)) == list(range(num))
    for i in range(num):
        assert one_to_one(row[:, 2 * i : 2 * i + 2], column[:, 2 * i : 2 * i + 2], 8, 8)
    assert (matrix[5, -1], row[5, -1], column[5, -1]) == (num - 1, 1, 3)
    turned = ldmatrix(num, transpose=True)
    assert (turned[1] == column).all() and (turned[2] == row).all()


def test_ldmatrix_x4_feeds_mma():
    """Four 8x8 tiles (top left, bottom left, top right, bottom right) give fragment A; two transposed, B."""
    matrix, row, column = ldmatrix(4)
    assert (mma_a(16, 16, 16)[0] == row + 8 * (matrix % 2)).all()
    assert (mma_a(16, 16, 16)[1] == column + 8 * (matrix // 2)).all()
    matrix, row, column = ldmatrix(2, transpose=True)
    assert (mma_b(16, 8, 16)[0] == row + 8 * matrix).all()
    assert (mma_b(16, 8, 16)[1] == column).all()


def test_movmatrix_transposes():
    tile = np.arange(64).reshape(8, 8)
    _, row, column = ldmatrix(1)
    registers = tile[row, column]
    thread, half = movmatrix()
    assert (registers[thread, half] == tile.T[row, column]).all()


@pytest.mark.parametrize(("m", "k", "bits"), SHAPES)
def test_product_by_fragments(m, k, bits):
    """Scatter random registers into A and B, multiply, gather D: one thread's results by hand."""
    rng = np.random.default_rng(m * k)
    a, b = rng.integers(-4, 5, (32, m * k // 32)), rng.integers(-4, 5, (32, k * 8 // 32))
    whole_a, whole_b = np.zeros((m, k), np.int64), np.zeros((k, 8), np.int64)
    whole_a[mma_a(m, k, bits)], whole_b[mma_b(k, 8, bits)] = a, b
    d = (whole_a @ whole_b)[mma_d(m, 8)]
    lane = 13  # rows g (and g + 8) times columns 2t, 2t + 1
    group, thread = divmod(lane, 4)
    expected = [whole_a[group + 8 * r] @ whole_b[:, 2 * thread + c] for r in range(m // 8) for c in (0, 1)]
    assert d[lane].tolist() == expected


def test_tables_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        mma_d(16, 8)[0][0, 0] = 1


@pytest.mark.slow
def test_agrees_with_tvm():
    """Slow: the import of TVM's table of intrinsics parses all of them, which takes a minute."""
    cuda = pytest.importorskip("tvm.s_tir.tensor_intrin.cuda")
    row, column = mma_a(16, 16, 16)
    for lane, i in np.ndindex(32, 8):
        assert (row[lane, i], column[lane, i]) == cuda.ldmatrix_32x8_to_shared_16x16_layout(lane, i)
    row, column = mma_a(16, 32, 8)
    for lane, i in np.ndindex(32, 16):
        assert cuda.shared_16x32_to_ldmatrix_32x16_layout(row[lane, i], column[lane, i]) == (lane, i)
