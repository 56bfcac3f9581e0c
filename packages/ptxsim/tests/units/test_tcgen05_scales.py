"""Block-scaled tcgen05.mma against float64 and the formats of ml_dtypes (PTX ISA 9.7.16.10.7)."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tcgen05_programs import descriptor, run, serious

from ptxsim.isa.layouts.block_scale import decode_block_scaled

SCALES = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}
NARROW = {  # code in the descriptor, bits, numpy type
    "e4m3": (0, 8, ml_dtypes.float8_e4m3fn),
    "e5m2": (1, 8, ml_dtypes.float8_e5m2),
    "e2m3": (3, 6, ml_dtypes.float6_e2m3fn),
    "e3m2": (4, 6, ml_dtypes.float6_e3m2fn),
    "e2m1": (5, 4, ml_dtypes.float4_e2m1fn),
}
FOUR = (1, 4, ml_dtypes.float4_e2m1fn)
SFA, SFB = 256, 288  # columns of the factors


def codes(rng, rows: int, depth: int, kind: tuple) -> np.ndarray:
    """Random finite elements as bytes."""
    _, bits, form = kind
    every = np.arange(1 << bits, dtype=np.uint8)
    finite = every[np.isfinite(every.view(form).astype(np.float32))]
    return rng.choice(finite, (rows, depth))


def stored(elements: np.ndarray, bits: int, packed: bool) -> np.ndarray:
    """uint8 (rows, 32): a row as stored in shared memory: two elements per byte, or 16 in 16 bytes with
    padding.
    """
    rows = []
    for row in elements:
        out = b""
        group = 64 if packed else 16
        for start in range(0, len(row), group):
            part = row[start : start + group]
            number = sum(int(v) << bits * i for i, v in enumerate(part))
            out += number.to_bytes(bits * len(part) // 8, "little").ljust(32 if packed else 16, b"\x5a")
        rows.append(np.frombuffer(out, np.uint8))
    return np.stack(rows)


def tiles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Shared memory of rows of 32 bytes without swizzle: 8 rows of 16 bytes, then the next; halves apart."""
    parts = []
    for rows in (a, b):
        half = rows.reshape(-1, 2, 16).transpose(1, 0, 2).reshape(-1)
        parts.append(half)
    return np.concatenate(parts)


def cells_with(factors_a: np.ndarray, factors_b: np.ndarray, a_id: int, b_id: int) -> np.ndarray:
    """Tensor memory with both sets of factors, copied to every 32 lanes."""
    cells = np.zeros((128, 512), np.uint32)
    raw = cells.view(np.uint8).reshape(128, 512, 4)
    for column, factors, first in ((SFA, factors_a, a_id), (SFB, factors_b, b_id)):
        for i, row in enumerate(factors):
            for copy in range(4):
                raw[i % 32 + 32 * copy, column + i // 32, first : first + len(row)] = row
    return cells


def instruction(kind: str, form_a, form_b, m: int, n: int, scale: str, a_id: int, b_id: int) -> int:
    bits = b_id << 4 | form_a[0] << 7 | form_b[0] << 10 | (n >> 3) << 17 | (m >> 4) << 24 | a_id << 29
    return bits | (scale == "ue8m0") << 23


def values(elements: np.ndarray, form, factors: np.ndarray, scale: str) -> np.ndarray:
    plain = elements.view(form[2]).astype(np.float64)
    factor = factors.view(SCALES[scale]).astype(np.float64)
    return plain * np.repeat(factor, plain.shape[1] // factor.shape[1], axis=1)


def product(kind, vector, form_a, form_b, n, scale, count, a_id=0, b_id=0, group=1, seed=0):
    """(tensor memory after the instruction, the expected D, the Result)."""
    rng, packed = np.random.default_rng(seed), kind != "mxf8f6f4"
    depth, rows = 64 if packed else 32, 128
    a, b = codes(rng, rows, depth, form_a), codes(rng, n, depth, form_b)
    low, high = (118, 136) if scale == "ue8m0" else (1, 0x7E)
    of_a, of_b = (rng.integers(low, high, (k, count), np.uint8) for k in (rows, n))
    tile = tiles(stored(a, form_a[1], packed), stored(b, form_b[1], packed))
    work = f"""
    add.u32 %r12, %r8, {SFA}; add.u32 %r13, %r8, {SFB};
    mov.u64 %d20, {descriptor(0, rows * 16, 128)};
    mov.u64 %d21, {descriptor(rows * 32, n * 16, 128)};
    mov.u32 %r14, {instruction(kind, form_a, form_b, 128, n, scale, a_id, b_id)};
    setp.ne.u32 %p7, %r1, %r1;
    tcgen05.mma.cta_group::1.kind::{kind}.block_scale{vector} [%r8], %d20, %d21, %r14, [%r12], [%r13], %p7;
    """
    out, result = run(work, tile, cells_with(of_a, of_b, a_id, b_id)[None])
    want = values(a, form_a, of_a, scale) @ values(b, form_b, of_b, scale).T
    return out[0, :, :n].view(np.float32), want, result


def near(found, want):
    scale = np.abs(want).max() or 1.0
    np.testing.assert_allclose(found, want, rtol=2e-6, atol=2e-6 * scale)


@pytest.mark.parametrize("name_a", NARROW)
@pytest.mark.parametrize("name_b", NARROW)
def test_mxf8f6f4(name_a, name_b):
    for ids in ((0, 0), (3, 1)):
        found, want, result = product(
            "mxf8f6f4", ".scale_vec::1X", NARROW[name_a], NARROW[name_b], 64, "ue8m0", 1, *ids
        )
        near(found, want)
        assert not serious(result)


@pytest.mark.parametrize(
    "kind, vector, scale, count, ids",
    [
        ("mxf4", "", "ue8m0", 2, (0, 0)),
        ("mxf4", ".scale_vec::2X", "ue8m0", 2, (2, 0)),
        ("mxf4", ".block32", "ue8m0", 2, (0, 2)),
        ("mxf4nvf4", ".scale_vec::2X", "ue8m0", 2, (2, 2)),
        ("mxf4nvf4", ".scale_vec::4X", "ue8m0", 4, (0, 0)),
        ("mxf4nvf4", ".scale_vec::4X", "ue4m3", 4, (0, 0)),
        ("mxf4nvf4", ".block16", "ue4m3", 4, (0, 0)),
    ],
)
@pytest.mark.parametrize("n", [8, 64, 200, 256])
def test_four_bits(kind, vector, scale, count, ids, n):
    found, want, result = product(kind, vector, FOUR, FOUR, n, scale, count, *ids, seed=n)
    near(found, want)
    assert not serious(result)


def test_a_factor_that_is_no_number():
    """0xFF of ue8m0 is NaN: its row of D is NaN, and no other."""
    rng = np.random.default_rng(0)
    a, b = codes(rng, 128, 64, FOUR), codes(rng, 8, 64, FOUR)
    of_a, of_b = np.full((128, 2), 127, np.uint8), np.full((8, 2), 127, np.uint8)
    of_a[5, 1] = 255
    work = f"""
    add.u32 %r12, %r8, {SFA}; add.u32 %r13, %r8, {SFB};
    mov.u64 %d20, {descriptor(0, 2048, 128)}; mov.u64 %d21, {descriptor(4096, 128, 128)};
    mov.u32 %r14, {instruction("mxf4", FOUR, FOUR, 128, 8, "ue8m0", 0, 0)};
    setp.ne.u32 %p7, %r1, %r1;
    tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r8], %d20, %d21, %r14, [%r12], [%r13], %p7;
    """
    tile = tiles(stored(a, 4, True), stored(b, 4, True))
    out, _ = run(work, tile, cells_with(of_a, of_b, 0, 0)[None])
    bad = np.isnan(out[0, :, :8].view(np.float32)).any(1)
    assert bad.nonzero()[0].tolist() == [5]


@pytest.mark.parametrize("kind", ["mxf4", "mxf4nvf4"])
def test_the_type_of_b_has_two_bits_for_four_bit_matrices(kind):
    """Bit 12 is the version of sparsity there (Tcgen05MxOmmaInstrDesc of CuTe DSL 4.8.1)."""
    bits = instruction(kind, FOUR, FOUR, 128, 64, "ue8m0", 0, 0)
    assert decode_block_scaled(bits | 1 << 12, kind, 2, 1) == decode_block_scaled(bits, kind, 2, 1)
    with pytest.raises(NotImplementedError):
        decode_block_scaled(bits | 1 << 12 | 1 << 2, kind, 2, 1)


@pytest.mark.parametrize(
    "change, text",
    [
        ({"scale": "ue4m3"}, "scale format 0"),
        ({"a_id": 1}, "SFA_ID 1"),
        ({"form_a": (5, 4, None)}, "matrix A has type 5"),
        ({"m": 64}, "there is no M=64"),
    ],
)
def test_descriptors_that_are_not_legal(change, text):
    fields = {
        "form_a": FOUR,
        "form_b": FOUR,
        "m": 128,
        "n": 64,
        "scale": "ue8m0",
        "a_id": 0,
        "b_id": 0,
    } | change
    work = f"""
    add.u32 %r12, %r8, {SFA};
    mov.u64 %d20, {descriptor(0, 2048, 128)};
    mov.u32 %r14, {instruction("mxf4", **fields)};
    setp.ne.u32 %p7, %r1, %r1;
    tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r8], %d20, %d20, %r14, [%r12], [%r12], %p7;
    """
    _, result = run(work, np.zeros(8192, np.uint8))
    assert any(text in message for message in serious(result))
