"""tcgen05.mma.ws against numpy: the place of D for each M, A from shared or tensor memory (9.7.16.10.5), and
columns of zeros.
"""

from __future__ import annotations

import numpy as np
import pytest
from tcgen05_programs import descriptor, run, serious

from ptxsim.isa.layouts.descriptors import decode_matrix_descriptor, operand_addresses
from ptxsim.units.tcgen05_columns import column_mask
from ptxsim.units.tcgen05_product import footprint

K = 16


def instruction(m: int, n: int) -> int:
    """f16 inputs, f32 result."""
    return 1 << 4 | (n >> 3) << 17 | (m >> 4) << 24


def tile_of(matrix: np.ndarray) -> np.ndarray:
    """float16 (rows, 16) as bytes: atoms of 8 rows of 16 bytes, the second 8 columns after all rows."""
    return np.ascontiguousarray(matrix.reshape(-1, 2, 8).transpose(1, 0, 2)).view(np.uint8).reshape(-1)


def place(m: int, n: int, row: int, column: int) -> tuple[int, int]:
    """(lane, column) of an element of D, by the figures of layouts D, E and G."""
    parts = 128 // m
    width = n // parts
    return row + m * (column // width), column % width


@pytest.mark.parametrize("m", [32, 64, 128])
@pytest.mark.parametrize("n", [64, 128, 256])
@pytest.mark.parametrize("source", ["shared", "tensor"])
def test_products(m, n, source):
    rng = np.random.default_rng(m + n)
    b = rng.integers(-4, 5, (n, K)).astype(np.float16)
    copies = 128 // m
    a = rng.integers(-4, 5, (copies, m, K)).astype(np.float16)  # in tensor memory each part of N has its own
    if source == "shared":
        a[:] = a[0]
    cells = np.zeros((1, 128, 512), np.uint32)
    cells[0, :, 400 : 400 + K // 2] = a.reshape(128, K).view(np.uint32)
    operand = "%d20" if source == "shared" else "[%r12]"
    work = f"""
    add.u32 %r12, %r8, 400;
    mov.u64 %d20, {descriptor(0, m * 16, 128)}; mov.u64 %d21, {descriptor(m * 32, n * 16, 128)};
    mov.u64 %d22, 0;
    mov.u32 %r14, {instruction(m, n)};
    setp.ne.u32 %p7, %r1, %r1;
    tcgen05.mma.ws.cta_group::1.kind::f16.collector::b0::fill [%r8], {operand}, %d21, %r14, %p7, %d22;
    """
    out, result = run(work, np.concatenate([tile_of(a[0]), tile_of(b)]), cells)
    found, want = np.zeros((m, n), np.float32), np.zeros((m, n), np.float32)
    width = n // copies
    for part in range(copies):
        columns = slice(part * width, (part + 1) * width)
        want[:, columns] = a[part].astype(np.float32) @ b[columns].astype(np.float32).T
    for row in range(m):
        for column in range(n):
            lane, at = place(m, n, row, column)
            found[row, column] = out[0, lane, at : at + 1].view(np.float32)[0]
    np.testing.assert_array_equal(found, want)
    assert not serious(result)


def test_shapes_without_ws_are_not_those_with_it():
    work = f"""
    mov.u64 %d20, {descriptor(0, 2048, 128)}; mov.u32 %r14, {instruction(128, 80)};
    setp.ne.u32 %p7, %r1, %r1;
    """
    plain = work + "tcgen05.mma.cta_group::1.kind::f16 [%r8], %d20, %d20, %r14, %p7;"
    stationary = work + "tcgen05.mma.ws.cta_group::1.kind::f16 [%r8], %d20, %d20, %r14, %p7;"
    tile, cells = np.zeros(8192, np.uint8), np.zeros((1, 128, 128), np.uint32)
    assert any("N=80" in text for text in serious(run(stationary, tile, cells)[1]))
    assert not any("N=80" in text for text in serious(run(plain, tile, cells)[1]))


def mask_bits(start: list[int], first: list[int], skip: int, use: int, shift: int = 0) -> int:
    bits = 1 << 39 | skip << 40 | use << 48 | shift << 56
    return bits | sum(s << 8 * i | f << 32 + i for i, (s, f) in enumerate(zip(start, first, strict=True)))


EXAMPLES = {  # of 9.7.16.4.3, from the lowest column on: M -> (mask, how its parts begin; 1: zeros)
    128: (mask_bits([0], [0], 2, 3), ["0000111"]),
    64: (mask_bits([0, 0], [1, 0], 2, 3), ["1110000", "0000111"]),
    32: (mask_bits([0, 1, 2, 1], [1, 1, 0, 0], 2, 3, 2), ["1110000", "1100001", "0011100", "0001110"]),
}


@pytest.mark.parametrize("m", EXAMPLES)
@pytest.mark.parametrize("mn", [False, True])
def test_zero_columns(m, mn, n=128):
    bits, parts = EXAMPLES[m]
    zero = np.concatenate([np.tile([c == "1" for c in part], n)[: n * m // 128] for part in parts])
    shift, rows = bits >> 56, n + 8
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-4, 5, (count, K)).astype(np.float16) for count in (m, rows))
    tile = np.ascontiguousarray(b.reshape(-1, 8, 2, 8).transpose(2, 0, 3, 1)) if mn else tile_of(b)
    tile = np.concatenate([tile_of(a), tile.view(np.uint8).reshape(-1)])
    of_b, form = descriptor(m * 32, rows * 16, 128), instruction(m, n) | mn << 16 | (shift > 0) << 30
    work = f"""
    mov.u64 %d20, {descriptor(0, m * 16, 128)}; mov.u64 %d21, {of_b}; mov.u64 %d22, {bits};
    mov.u32 %r14, {form}; setp.ne.u32 %p7, %r1, %r1;
    tcgen05.mma.ws.cta_group::1.kind::f16 [%r8], %d20, %d21, %r14, %p7, %d22;
    """
    out, result = run(work, tile, np.zeros((1, 128, 128), np.uint32))
    want = a.astype(np.float32) @ np.where(zero[:, None], 0, b[shift : shift + n]).astype(np.float32).T
    found = [[out[0][place(m, n, i, j)] for j in range(n)] for i in range(m)]
    np.testing.assert_array_equal(np.array(found, np.uint32).view(np.float32), want)
    assert not serious(result)
    at = operand_addresses(decode_matrix_descriptor(of_b), n + shift + -shift % 8 * mn, K, 2, mn)[shift:][:n]
    told = footprint((form, "f16", 1, True, 0, False, False), (0,), (0, of_b, 0, 0, (), -1, (), 0, bits))
    assert set(told.reads[-1].chunks.reshape(-1)) == set((at[~zero] >> 4).reshape(-1))


@pytest.mark.parametrize("bits", [1 << 36, 2 << 56, mask_bits([4], [0], 2, 3)])
def test_masks_that_are_not_legal_or_whose_start_the_isa_leaves_open(bits):
    with pytest.raises((ValueError, NotImplementedError), match="zero-column mask"):
        column_mask(bits, 128, 128, 0)
