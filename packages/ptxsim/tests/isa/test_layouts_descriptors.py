"""ptxsim.layouts: swizzles and descriptors; canonical layouts against shape:stride formulas and TVM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxsim.isa.layouts.descriptors import (
    MMA_K,
    MatrixDescriptor,
    decode_instruction_descriptor,
    decode_matrix_descriptor,
    encode_matrix_descriptor,
    operand_addresses,
)
from ptxsim.isa.layouts.swizzle import PERIOD, XORS, swizzle

SPANS = (32, 64, 128)


# --- swizzles ---


@pytest.mark.parametrize("mode", XORS)
def test_swizzle_permutes_each_period(mode):
    period = max(PERIOD[mode], 128)
    linear = np.arange(4 * period)
    physical = swizzle(linear, mode)
    assert (physical // period == linear // period).all() and len(np.unique(physical)) == len(linear)
    assert (swizzle(physical, mode) == linear).all()
    assert (physical // 128 == linear // 128).all()  # bytes stay in their 128 B row
    shifted = swizzle(linear + period, mode)
    assert (shifted == physical + period).all()


def test_swizzle_patterns():
    """16 B pieces of the first rows of each pattern (PTX ISA 5.5.6)."""
    chunk = {mode: swizzle(np.arange(64) * 16, mode).reshape(8, 8) // 16 % 8 for mode in XORS}
    assert (chunk[128] == np.arange(8)[:, None] ^ np.arange(8)[None, :]).all()
    assert chunk[64][:5].tolist() == [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [1, 0, 3, 2, 5, 4, 7, 6],
        [2, 3, 0, 1, 6, 7, 4, 5],
        [3, 2, 1, 0, 7, 6, 5, 4],
        [0, 1, 2, 3, 4, 5, 6, 7],
    ]
    assert chunk[32][1].tolist() == [1, 0, 3, 2, 5, 4, 7, 6] and chunk[32][2].tolist() == list(range(8))
    assert chunk["128_atom32"][1].tolist() == [2, 3, 0, 1, 6, 7, 4, 5]
    assert chunk["128_atom64"][1].tolist() == [4, 5, 6, 7, 0, 1, 2, 3]
    assert (chunk[0] == np.arange(8)).all()
    assert swizzle(128, "128_atom32_flip8") == 128 + 32 + 8


# --- matrix descriptors ---


DESCRIPTORS = st.builds(
    MatrixDescriptor,
    *[st.integers(0, (1 << 14) - 1).map(lambda x: x * 16)] * 3,
    st.sampled_from([0, 32, 64, 128]),
    st.integers(0, 7),
)


@given(DESCRIPTORS, st.sampled_from(["sm_90", "sm_100"]))
def test_descriptor_round_trip(desc, arch):
    assert decode_matrix_descriptor(encode_matrix_descriptor(desc, arch), arch) == desc


def test_descriptor_fields():
    bits = 2 << 61 | 1 << 46 | 64 << 32 | 1 << 16 | 0x400
    assert decode_matrix_descriptor(bits) == MatrixDescriptor(0x4000, 16, 1024, 128)
    assert decode_matrix_descriptor(bits | 1 << 52).absolute
    assert decode_matrix_descriptor(bits ^ 1 << 46) == decode_matrix_descriptor(bits)
    assert decode_matrix_descriptor(1 << 61 | 1 << 46).swizzle == "128_atom32"
    assert decode_matrix_descriptor(1 << 62, "sm_90").swizzle == 128
    assert decode_matrix_descriptor(3 << 62, "sm_90").swizzle == 32


@pytest.mark.parametrize(
    ("bits", "message"),
    [
        (3 << 61 | 1 << 46, "swizzle field 3 is reserved"),
        (64 << 32, "bits 46-48"),  # forgiven only with a swizzle
        (2 << 61 | 2 << 46, "bits 46-48"),
        (2 << 61 | 3 << 46, "bits 46-48"),
        (1 << 55 | 1 << 46, "bits 53-60"),
    ],
)
def test_descriptor_refuses(bits, message):
    with pytest.raises(ValueError, match=message):
        decode_matrix_descriptor(bits)


# --- canonical layouts ---


def cute_k_major(desc, rows, depth, size):
    """Swizzle o ((8, m), (T, 2k)) : ((span, SBO), (1, T or LBO)), element by element."""
    span = desc.swizzle or 16
    out = np.zeros((rows, depth), np.int64)
    for row, k in np.ndindex(rows, depth):
        column, byte = divmod(k * size, 16)
        step = desc.leading if desc.swizzle == 0 else 16
        out[row, k] = desc.start + row % 8 * span + row // 8 * desc.stride + column * step + byte
    return swizzle(out, desc.swizzle)


def cute_mn_major(desc, rows, depth, size):
    """Swizzle o ((T, s, m), (8, k)) : ((1, T, LBO), (sT, SBO)); without swizzle LBO and SBO change roles."""
    pieces = (desc.swizzle or 16) // 16
    across, along = (desc.stride, desc.leading) if desc.swizzle == 0 else (desc.leading, desc.stride)
    out = np.zeros((rows, depth), np.int64)
    for row, k in np.ndindex(rows, depth):
        piece, byte = divmod(row * size, 16)
        inside, group = piece % pieces, piece // pieces
        out[row, k] = desc.start + byte + inside * 16 + group * across + k % 8 * pieces * 16 + k // 8 * along
    return swizzle(out, desc.swizzle)


@pytest.mark.parametrize("mode", (0, *SPANS))
@pytest.mark.parametrize("size", (1, 2, 4))
@pytest.mark.parametrize("mn_major", (False, True))
def test_operand_addresses(mode, size, mn_major):
    desc = MatrixDescriptor(2048, 4096, 9 * 1024, mode)
    rows, depth = 64, 32 // size
    found = operand_addresses(desc, rows, depth, size, mn_major)
    reference = cute_mn_major if mn_major else cute_k_major
    assert (found == reference(desc, rows, depth, size)).all()
    assert len(np.unique(found)) == rows * depth


@pytest.mark.parametrize("mode", SPANS)
def test_operand_tile_is_what_tma_writes(mode):
    """K-major: TMA writes swizzled rows of `mode` bytes one after another; a K step moves start by 32 B."""
    rows, step = 128, 32
    for k in range(0, mode, step):
        desc = MatrixDescriptor(1024 + k, 16, 8 * mode, mode)
        found = operand_addresses(desc, rows, 16, 2, mn_major=False)
        linear = 1024 + np.arange(rows)[:, None] * mode + k + 2 * np.arange(16)[None, :]
        assert (found == swizzle(linear, mode)).all()


@pytest.mark.parametrize("mode", SPANS)
def test_mn_major_tile_is_what_tma_writes(mode):
    """MN-major: TMA boxes of `mode` bytes along M, 64 deep, one box after another."""
    box = 64 * mode
    desc = MatrixDescriptor(1024 + 16 * mode, box, 8 * mode, mode)  # second K step of 16
    found = operand_addresses(desc, 256 // 2, 16, 2, mn_major=True)
    byte, k = 2 * np.arange(128)[:, None], 16 + np.arange(16)[None, :]
    linear = 1024 + byte // mode * box + k * mode + byte % mode
    assert (found == swizzle(linear, mode)).all()


def test_wide_atom_layout():
    """tf32 MN-major in the 128 B swizzle with 32 B atoms: rows of 128 B, atoms of 4 rows."""
    desc = MatrixDescriptor(0, 8192, 512, "128_atom32")
    found = operand_addresses(desc, 64, 8, 4, mn_major=True)
    byte, k = 4 * np.arange(64)[:, None], np.arange(8)[None, :]
    linear = byte % 128 + byte // 128 * 8192 + k * 128
    assert (found == swizzle(linear, "128_atom32")).all()
    with pytest.raises(ValueError, match="MN-major"):
        operand_addresses(desc, 64, 8, 4, mn_major=False)


def test_base_offset_moves_the_pattern():
    """A pattern that starts at row 3 of a 1024 B block, with base 3, reads as if it started at row 0."""
    aligned = MatrixDescriptor(1024, 16, 1024, 128)
    moved = replace(aligned, start=1024 + 3 * 128, base=3)
    first = operand_addresses(aligned, 16, 16, 2, mn_major=False)
    assert (operand_addresses(moved, 16, 16, 2, mn_major=False) == first + 3 * 128).all()


def test_absolute_leading_dimension_is_refused():
    with pytest.raises(ValueError, match="not modelled"):
        operand_addresses(MatrixDescriptor(0, 0, 0, 128, 0, True), 8, 8, 2, False)


@pytest.mark.parametrize(("value", "mode"), [(1, 32), (2, 64), (3, 128), (0, 0)])
@pytest.mark.parametrize("dtype", ("float16", "float32", "int8"))
def test_k_major_tiles_agree_with_tvm(value, mode, dtype):
    """TVM's MMA shared layouts: byte offset of every element of a 64 x (one span) tile."""
    tma = pytest.importorskip("tvm.backend.cuda.tile_primitive.tma_utils")
    size = np.dtype(dtype).itemsize
    shape = (64, (mode or 32) // size)
    theirs = tma.mma_shared_layout(dtype, value, shape)
    leading = 64 * 16 if mode == 0 else 16
    desc = MatrixDescriptor(0, leading, 8 * (mode or 16), mode)
    ours = operand_addresses(desc, *shape, size, mn_major=False)
    offsets = [int(theirs.apply(int(r), int(c), shape=list(shape))["m"]) for r, c in np.ndindex(*shape)]
    assert (ours == np.array(offsets).reshape(shape) * size).all()


# --- instruction descriptors ---


def test_instruction_descriptor_fields():
    bits = 1 << 4 | 1 << 7 | 1 << 10 | 1 << 13 | 1 << 16 | 32 << 17 | 8 << 24
    found = decode_instruction_descriptor(bits)
    assert (found.m, found.n, found.k) == (128, 256, 16)
    assert (found.a_type, found.b_type, found.d_type) == ("bf16", "bf16", "f32")
    assert (found.a_mn_major, found.b_mn_major) == (False, True)
    assert (found.negate_a, found.negate_b, found.saturate, found.sparse) == (True, False, False, False)
    sparse = decode_instruction_descriptor(bits | 1 << 2 | 1)
    assert (sparse.k, sparse.selector) == (32, 1)
    with pytest.raises(NotImplementedError, match="sparsity selector 3"):
        decode_instruction_descriptor(bits | 1 << 2 | 3)


def shape_bits(m, n, types=1 << 4):
    return types | n >> 3 << 17 | m >> 4 << 24


KINDS = [
    ("f16", "float32", "float16", "f32", "f16"),
    ("f16", "float16", "float16", "f16", "f16"),
    ("f16", "float32", "bfloat16", "f32", "bf16"),
    ("tf32", "float32", "tensor_float32", "f32", "tf32"),
    ("f8f6f4", "float32", "float8_e4m3fn", "f32", "e4m3"),
    ("f8f6f4", "float32", "float8_e5m2", "f32", "e5m2"),
    ("i8", "int32", "int8", "s32", "s8"),
    ("i8", "int32", "uint8", "s32", "u8"),
]


@pytest.mark.parametrize(("kind", "d_tvm", "in_tvm", "d_type", "in_type"), KINDS)
@pytest.mark.parametrize(("pair", "m", "n"), [(1, 64, 64), (1, 128, 256), (2, 128, 64), (2, 256, 256)])
@pytest.mark.parametrize("transpose", [(False, False), (True, False), (False, True)])
def test_instruction_descriptor_agrees_with_tvm(kind, d_tvm, in_tvm, d_type, in_type, pair, m, n, transpose):
    tcgen05 = pytest.importorskip("tvm.backend.cuda.tile_primitive.gemm_async.tcgen05")
    depth = MMA_K[kind]
    bits = tcgen05._encode_instr_descriptor_dense_uint32(m, n, depth, d_tvm, in_tvm, in_tvm, *transpose, pair)
    found = decode_instruction_descriptor(bits, kind, pair)
    assert (found.m, found.n, found.k, found.d_type) == (m, n, depth, d_type)
    assert found.a_type == found.b_type == in_type
    assert (found.a_mn_major, found.b_mn_major) == transpose


@pytest.mark.parametrize(
    ("pair", "kind", "types"), [(1, "f16", 1 << 4), (2, "f16", 1 << 4), (1, "i8", 2 << 4)]
)
def test_shapes_of_tvm_are_accepted(pair, kind, types):
    """Of every (M, N) that the fields can express; its steps of N are at times twice those of the ISA."""
    tvm_check = pytest.importorskip("tvm.backend.cuda.intrinsics.tcgen05")._check_tcgen05_mma_matrix_shape
    for m, n in np.ndindex(32, 64):
        m, n = m * 16, n * 8
        try:
            decode_instruction_descriptor(shape_bits(m, n, types), kind, pair)
            ours = True
        except ValueError:
            ours = False
        try:
            theirs = tvm_check(kind, pair, m, n, MMA_K[kind], False)
        except ValueError:
            theirs = False
        assert ours or not theirs, (m, n)


@pytest.mark.parametrize(
    ("pair", "kind", "step", "odd"),
    [(1, "f16", 8, []), (2, "f16", 16, []), (1, "i8", 16, [8, 24]), (2, "i8", 32, [])],
)
def test_steps_of_n(pair, kind, step, odd):
    """PTX ISA 9.7.16.2.1; CUTLASS's attention for few queries multiplies 128 x 8."""
    types = {"f16": 1, "i8": 2}[kind] << 4
    for m in (64 * pair, 128 * pair):
        for n in range(0, 512, 8):
            try:
                decode_instruction_descriptor(shape_bits(m, n, types), kind, pair)
                accepted = True
            except ValueError:
                accepted = False
            assert accepted == (n in odd or n in range(step, 257, step)), (m, n)


@pytest.mark.parametrize(
    ("bits", "kind", "message"),
    [
        (shape_bits(128, 64), "mxf4", "not modelled"),
        (shape_bits(128, 64) | 1 << 23, "f16", "reserved"),
        (shape_bits(128, 64) | 2 << 7, "f16", "matrix A has type 2"),
        (shape_bits(128, 64, 2 << 4), "f16", "matrix D has type 2"),
        (shape_bits(128, 40, 2 << 4), "i8", "N=40; expected N a multiple of 16"),
        (shape_bits(256, 64), "f16", r"M=256, N=64; expected M from \[64, 128\]"),
    ],
)
def test_instruction_descriptor_refuses(bits, kind, message):
    with pytest.raises(ValueError, match=message):
        decode_instruction_descriptor(bits, kind)
