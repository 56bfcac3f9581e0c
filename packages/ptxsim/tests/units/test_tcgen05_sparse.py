"""tcgen05.mma.sp and .ashift against numpy (PTX ISA 9.7.16.10.8, 9.7.16.10.9): a zeroed A times B."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tcgen05_programs import descriptor, run, serious

META, SFA, SFB = 320, 256, 288  # columns of the metadata and of factors
ROWS = 128
TWO_OF_FOUR = {0b0100: (0, 1), 0b1000: (0, 2), 0b1100: (0, 3), 0b1001: (1, 2), 0b1101: (1, 3), 0b0110: (2, 1)}
TWO_OF_FOUR[0b1110] = (2, 3)
KINDS = {  # kind -> (numpy type, its code, bytes of an element in shared memory, elements of A stored)
    "f16": (np.float16, 0, 2, 16),
    "tf32": (np.float32, 2, 4, 8),
    "f8f6f4": (ml_dtypes.float8_e4m3fn, 0, 1, 32),
    "i8": (np.int8, 1, 1, 32),
}


def lies(kind: str, row: int, chunk: int) -> tuple[int, int, int]:
    """(lane, column, bit) of the index of a chunk."""
    if kind in ("f16", "tf32"):
        tile, inside = row // 16 * 16, row % 16
        return tile + inside % 8 + 8 * (chunk // 4), 0, 16 * (inside // 8) + 4 * (chunk % 4)
    return row, chunk // 8, 4 * (chunk % 8)


def sparse(rng, kind: str, stored: np.ndarray, together: int = 1):
    """(A with zeros, tensor memory with its metadata), with random indices; `together` elements share one."""
    rows, count = stored.shape
    width = 2 if kind == "tf32" else 4
    chunks = 2 * count // (width * together)
    full = np.zeros((rows, chunks, width, together), stored.dtype)
    parts = stored.reshape(rows, chunks, width // 2, together)
    cells = np.zeros((ROWS, 512), np.uint32)
    legal = {0b0100: (0,), 0b1110: (1,)} if kind == "tf32" else TWO_OF_FOUR
    for row in range(rows):
        for chunk in range(chunks):
            index = int(rng.choice(list(legal)))
            for part, place in enumerate(legal[index]):
                full[row, chunk, place] = parts[row, chunk, part]
            lane, column, bit = lies(kind, row, chunk)
            cells[lane, META + column] |= index << bit
    return full.reshape(rows, -1), cells


def tile_of(rows: np.ndarray) -> np.ndarray:
    """Bytes of a K-major operand without swizzle: 8 rows of 16 bytes; the next 16 bytes after all rows."""
    data = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1, 16)
    return data.transpose(1, 0, 2).reshape(-1)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64).T


def drawn(rng, shape, form) -> np.ndarray:
    return rng.integers(-4, 5, shape).astype(form)


def instruction(kind: str, n: int, selector: int = 0, m: int = ROWS, is_sparse: bool = True) -> int:
    code, result = KINDS[kind][1], 2 if kind == "i8" else 1
    return selector | is_sparse << 2 | result << 4 | code << 7 | code << 10 | (n >> 3) << 17 | (m >> 4) << 24


def multiply(kind: str, bits: int, tile, cells, n: int, operand="%d20"):
    work = f"""
    add.u32 %r12, %r8, {META}; add.u32 %r13, %r8, 400;
    mov.u64 %d20, {descriptor(0, ROWS * 16, 128)};
    mov.u64 %d21, {descriptor(ROWS * 32, n * 16, 128)};
    mov.u32 %r14, {bits};
    setp.ne.u32 %p7, %r1, %r1;
    tcgen05.mma.sp.cta_group::1.kind::{kind} [%r8], {operand}, %d21, [%r12], %r14, %p7;
    """
    out, result = run(work, tile, cells[None])
    return out[0, :, :n].view(np.int32 if kind == "i8" else np.float32), result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [16, 128, 256])
@pytest.mark.parametrize("source", ["shared", "tensor"])
def test_products(kind, n, source):
    form, _, width, count = KINDS[kind]
    rng = np.random.default_rng(n)
    a, b = drawn(rng, (ROWS, count), form), drawn(rng, (n, 2 * count), form)
    full, cells = sparse(rng, kind, a)
    cells[:, 400:408] = a.view(np.uint8).reshape(ROWS, -1).view(np.uint32)
    operand = "%d20" if source == "shared" else "[%r13]"
    found, result = multiply(
        kind, instruction(kind, n), np.concatenate([tile_of(a), tile_of(b)]), cells, n, operand
    )
    np.testing.assert_array_equal(found, full.astype(np.float64) @ b.astype(np.float64).T)
    assert not serious(result)


@pytest.mark.parametrize("kind", ["f16", "tf32"])
def test_the_selector_takes_the_next_column(kind):
    form, _, _, count = KINDS[kind]
    rng = np.random.default_rng(5)
    a, b = drawn(rng, (ROWS, count), form), drawn(rng, (16, 2 * count), form)
    full, cells = sparse(rng, kind, a)
    cells[:, META + 1], cells[:, META] = cells[:, META], 0
    found, result = multiply(
        kind, instruction(kind, 16, 1), np.concatenate([tile_of(a), tile_of(b)]), cells, 16
    )
    np.testing.assert_array_equal(found, full.astype(np.float64) @ b.astype(np.float64).T)
    assert not serious(result)


@pytest.mark.parametrize("vector, count, scale", [("", 2, "ue8m0"), (".scale_vec::4X", 4, "ue4m3")])
def test_pairs_of_four_bits_with_factors(vector, count, scale):
    """mxf4: a byte holds two elements, and the index of a chunk of eight places whole bytes."""
    rng, n = np.random.default_rng(count), 64
    a, b = (rng.integers(0, 256, shape, np.uint8) for shape in ((ROWS, 32), (n, 64)))
    full, cells = sparse(rng, "mxf4", a)
    form = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}[scale]
    of_a, of_b = (rng.integers(110, 126, (k, count), np.uint8) for k in (ROWS, n))
    raw = cells.view(np.uint8).reshape(ROWS, 512, 4)
    for column, factors in ((SFA, of_a), (SFB, of_b)):
        for i, row in enumerate(factors):
            raw[i % 32 :: 32, column + i // 32, :count] = row

    def values(data, factors):
        halves = np.stack([data & 15, data >> 4], -1).reshape(len(data), -1).view(ml_dtypes.float4_e2m1fn)
        block = halves.shape[1] // count
        return halves.astype(np.float64) * np.repeat(factors.view(form).astype(np.float64), block, axis=1)

    bits = 1 << 2 | 1 << 7 | 1 << 10 | (n >> 3) << 17 | (scale == "ue8m0") << 23 | (ROWS >> 4) << 24
    work = f"""
    add.u32 %r11, %r8, {META}; add.u32 %r12, %r8, {SFA}; add.u32 %r13, %r8, {SFB};
    mov.u64 %d20, {descriptor(0, ROWS * 16, 128)}; mov.u64 %d21, {descriptor(ROWS * 32, n * 16, 128)};
    mov.u32 %r14, {bits};
    setp.ne.u32 %p7, %r1, %r1;
    tcgen05.mma.sp.cta_group::1.kind::{"mxf4" if count == 2 else "mxf4nvf4"}.block_scale{vector}
        [%r8], %d20, %d21, [%r11], %r14, [%r12], [%r13], %p7;
    """
    out, result = run(work, np.concatenate([tile_of(a), tile_of(b)]), cells[None])
    want = values(full, of_a) @ values(b, of_b).T
    np.testing.assert_allclose(
        out[0, :, :n].view(np.float32), want, rtol=2e-6, atol=2e-6 * np.abs(want).max()
    )
    assert not serious(result)


def test_what_means_nothing_is_said():
    rng = np.random.default_rng(0)
    a, b = drawn(rng, (ROWS, 16), np.float16), drawn(rng, (16, 32), np.float16)
    tile, (_, cells) = np.concatenate([tile_of(a), tile_of(b)]), sparse(rng, "f16", a)
    good, odd = instruction("f16", 16), cells.copy()
    odd[8, META] &= ~np.uint32(15)  # chunk 4 of row 0
    cases = [
        (good, odd, "metadata of row 0, chunk 4: 0b0000"),
        (good & ~4, cells, "bit 2 (sparse) is 0"),
        (instruction("f16", 16, 2), cells, "sparsity selector 2"),
        (instruction("f16", 16, m=64), cells, "a sparse A of 64 rows in each CTA is not modelled"),
    ]
    for bits, metadata, text in cases:
        assert any(text in said for said in serious(multiply("f16", bits, tile, metadata, 16)[1])), text
    assert not serious(multiply("f16", good, tile, cells, 16)[1])


def test_where_zeros_are_stored_any_index_is_right():
    """CUTLASS's compressor gives 0b0000 to a chunk that has only zeros."""
    rng = np.random.default_rng(6)
    a, b = drawn(rng, (ROWS, 16), np.float16), drawn(rng, (16, 32), np.float16)
    a[0, 8:10] = 0
    full, cells = sparse(rng, "f16", a)
    cells[8, META] &= ~np.uint32(15)  # chunk 4 of row 0
    found, result = multiply(
        "f16", instruction("f16", 16), np.concatenate([tile_of(a), tile_of(b)]), cells, 16
    )
    np.testing.assert_array_equal(found, product(full, b))
    assert ["review"] == [f.severity for f in result.findings if "only zeros are stored" in f.message]


@pytest.mark.parametrize("shift", [False, True])
def test_ashift_takes_the_row_below(shift):
    """Row i of A is row i + 1 of tensor memory, the last row itself."""
    rng, n = np.random.default_rng(1), 32
    a, b = drawn(rng, (ROWS, 16), np.float16), drawn(rng, (n, 16), np.float16)
    cells = np.zeros((ROWS, 512), np.uint32)
    cells[:, 400:408] = a.view(np.uint32)
    work = f"""
    add.u32 %r13, %r8, 400;
    mov.u64 %d21, {descriptor(0, n * 16, 128)};
    mov.u32 %r14, {instruction("f16", n, is_sparse=False)};
    setp.ne.u32 %p7, %r1, %r1;
    tcgen05.mma.cta_group::1.kind::f16{".ashift" * shift} [%r8], [%r13], %d21, %r14, %p7;
    """
    out, result = run(work, tile_of(b), cells[None])
    rows = np.concatenate([a[1:], a[-1:]]) if shift else a
    np.testing.assert_array_equal(
        out[0, :, :n].view(np.float32), rows.astype(np.float32) @ b.astype(np.float32).T
    )
    assert not serious(result)
