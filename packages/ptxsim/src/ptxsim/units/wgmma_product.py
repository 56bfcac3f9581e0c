"""The product of one wgmma.mma_async in compiled code, for its handler and for the main loop.

Products of two elements are exact in float32 for all types, and so are sums of 32 integer products or of
256 bits. Sums run in ascending order along K, with one rounding per step. A chip may round and order them
differently (PTX ISA 9.7.15.5.2).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ptxsim.isa.address_map import SHARED_START
from ptxsim.isa.mathlib.floating import as_f32, f32_result
from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import M16, M32
from ptxsim.isa.mathlib.small_floats import f16_f32, f16_of
from ptxsim.isa.mathlib.soft_float import RN
from ptxsim.jit.called import ParameterBlock
from ptxsim.jit.compiled import compiled
from ptxsim.jit.intrinsics import lane_value, load8, load32, set_lane_value
from ptxsim.jit.loop_memory import word
from ptxsim.jit.simd_matrix import decode_bf16, decode_f16, lane_products
from ptxsim.units.mma import value_table
from ptxsim.units.mma_form import BITS
from ptxsim.units.sparse_a import SPARSE_WORDS, expand, sparse_words
from ptxsim.units.wgmma_form import WgmmaForm

N, K, D_KIND, SATURATE, IN_REGISTERS, A_KIND, B_KIND, A_NEGATIVE, B_NEGATIVE, A_MN, B_MN = range(11)
A_TABLE, B_TABLE, A_SLOTS, D_SLOTS, METADATA = range(11, 16)
MORE = METADATA + SPARSE_WORDS
HALF, BFLOAT, WIDE, BYTE, BIT = range(5)  # types of A and B
_KINDS = {"f16": HALF, "bf16": BFLOAT, "tf32": WIDE, "b1": BIT}
F16, F32, S32 = range(3)
_RESULTS = {"f16": F16, "f32": F32, "s32": S32}
WARPS = 4
_NO_TABLE = np.zeros(1, np.float32)


def product_words(form: WgmmaForm, a_slots, d_slots, metadata: int) -> tuple:
    """The first words of a ParameterBlock."""
    tables = (value_table(kind) if BITS[kind] == 8 else _NO_TABLE for kind in (form.a, form.b))
    kinds = (_KINDS.get(kind, BYTE) for kind in (form.a, form.b))
    first = form.n, form.k, _RESULTS[form.d], form.saturate, form.in_registers, *kinds
    signs = form.negate_a, form.negate_b, form.a_mn, form.b_mn
    slots = np.array(a_slots, np.int64), np.array(d_slots, np.int64)
    return *first, *signs, *tables, *slots, *sparse_words(form.sparse, metadata)


@lru_cache(maxsize=256)
def block_of_registers(form: WgmmaForm) -> ParameterBlock:
    """A ParameterBlock for operands in separate arrays: A (4, 32), D (registers, 32), indices (1, 32)."""
    return ParameterBlock(*product_words(form, range(4), range(form.registers), 0))


# ---- operands in shared memory ----


@inner
def _chunk_numbers(bits, rows, row_bytes, size, mn, limit, numbers):
    """Fills in the numbers of an operand's 16-byte chunks (layouts/descriptors.py): row by row, or for an
    MN-major operand, K by K. False if a chunk is not in shared memory. row_bytes: of K.
    """
    start, leading, stride = (bits & 0x3FFF) << 4, (bits >> 16 & 0x3FFF) << 4, (bits >> 32 & 0x3FFF) << 4
    base, mode = (bits >> 49 & 7) << 7, bits >> 62 & 3
    shift = 8 - mode if mode else 4  # of the bytes of a row of the pattern: 128, 64, 32, or 16 without one
    mask = (1 << shift) - 16
    next_span, next_atom = (leading, stride) if mode or not mn else (stride, leading)
    lines, across = (row_bytes // size, rows * size // 16) if mn else (rows, row_bytes >> 4)
    n = 0
    for line in range(lines):
        for chunk in range(across):
            along = 16 * chunk
            linear = (along & (1 << shift) - 1) + (along >> shift) * next_span
            linear += ((line & 7) << shift) + (line >> 3) * next_atom + start
            address = linear ^ ((linear - base) >> 3 & mask)
            if address < SHARED_START or address + 16 > limit:
                return False
            numbers[n] = address >> 4
            n += 1
    return True


@inner
def _raw_element(kind, raw, table):
    """The float32 value of an element's bits."""
    if kind == HALF:
        return f16_f32(raw)
    if kind == BFLOAT:
        return as_f32(raw << np.uint64(16))
    if kind == WIDE:  # the tensor core reads the upper 19 bits (PTX ISA 5.2.3)
        return as_f32(raw & np.uint64(0xFFFFE000))
    if kind == BIT:
        return np.float32(raw)
    return as_f32(load32(np.uint64(table) + np.uint64(4) * raw))


@inner
def _decode(kind, window, numbers, table, out):
    """Fills `out` with the float32 values of chunks, in their order."""
    first, target = numbers.ctypes.data, out.ctypes.data
    if kind == HALF:
        for i in range(0, numbers.size, 4):
            decode_f16(window, first + 8 * i, target + 32 * i)
    elif kind == BFLOAT:
        for i in range(0, numbers.size, 4):
            decode_bf16(window, first + 8 * i, target + 32 * i)
    elif kind == BIT:
        for i in range(16 * numbers.size):
            raw = load8(np.uint64(window + 16 * numbers[i >> 4] + (i & 15)))
            for j in range(8):
                out[8 * i + j] = np.float32(raw >> np.uint64(j) & np.uint64(1))
    else:
        per = 4 if kind == WIDE else 16
        for i in range(numbers.size):
            chunk = window + 16 * numbers[i]
            for j in range(per):
                raw = load32(np.uint64(chunk + 4 * j)) if kind == WIDE else load8(np.uint64(chunk + j))
                out[per * i + j] = _raw_element(kind, raw, table)


@inner
def _sparse(block):
    return 1 if word(block, METADATA) >= 0 else 0


@inner
def _from_shared(block, which, bits, rows, window, limit):
    """(float32 values, row by row, or K by K if MN-major; whether the descriptor is legal)."""
    sparse, mn = _sparse(block), word(block, A_MN + which) != 0
    k, row_bytes = word(block, K) >> (sparse & (1 - which)), 32 << (sparse & which)
    values, numbers = np.empty(rows * k, np.float32), np.empty(rows * row_bytes >> 4, np.int64)
    legal = _chunk_numbers(bits, rows, row_bytes, row_bytes // k, mn, limit, numbers)
    if legal:
        _decode(word(block, A_KIND + which), window, numbers, word(block, A_TABLE + which), values)
    return values, legal


@inner
def _from_registers(block, files):
    """float32 (64 * K,): A, row-major. Registers alternate between rows 0-7 and 8-15, then go along K."""
    k, kind, table = word(block, K) >> _sparse(block), word(block, A_KIND), word(block, A_TABLE)
    per, values = k // 8, np.empty(64 * k, np.float32)
    width = 32 // per
    low = np.uint64((1 << width) - 1)
    for warp in range(WARPS):
        for r in range(4):
            slot = word(word(block, A_SLOTS), r)
            for l in range(32):
                raw = lane_value(np.uint64(word(files, warp)), slot, l)
                at = (16 * warp + l // 4 + 8 * (r & 1)) * k + (l % 4 + 4 * (r >> 1)) * per
                for p in range(per):
                    values[at + p] = _raw_element(kind, raw >> np.uint64(width * p) & low, table)
    return values


@inner
def _expanded(block, a, mn, files, found):
    """A with its zeros, row-major, given the stored half of it, which is M-major if mn."""
    k = word(block, K)
    stored, out = np.empty(32 * k, np.float32), np.empty(64 * k, np.float32)
    for row in range(64):
        for s in range(k >> 1):
            stored[row * (k >> 1) + s] = a[64 * s + row] if mn else a[row * (k >> 1) + s]
    for warp in range(WARPS):
        expand(block + 8 * METADATA, np.uint64(word(files, warp)), stored, out, 16 * warp * k, found)
    return out


# ---- the product, as vectors of the lanes of a warp that hold one register of D (PTX ISA 9.7.15.5.1.1) ----


@inner
def _lanes_of_a(block, a, mn):
    """A as (strip of eight rows, K, lane): the row of each lane."""
    k = word(block, K)
    sign = np.float32(-1 if word(block, A_NEGATIVE) else 1)
    lanes = np.empty(64 * k * 4, np.float32)
    for row in range(64):
        for s in range(k):
            x = sign * (a[64 * s + row] if mn else a[k * row + s])
            at = ((row >> 3) * k + s) * 32 + (row & 7) * 4
            for l in range(4):
                lanes[at + l] = x
    return lanes


@inner
def _lanes_of_b(block, b):
    """B as (group of eight columns, which of a lane's two columns, K, lane % 4): the column of each lane."""
    n, k, mn = word(block, N), word(block, K), word(block, B_MN) != 0
    sign = np.float32(-1 if word(block, B_NEGATIVE) else 1)
    lanes = np.empty(n * k, np.float32)
    for column in range(n):
        at = ((column >> 3) * 2 + (column & 1)) * 4 * k + (column >> 1 & 3)
        for s in range(k):
            lanes[at + 4 * s] = sign * (b[n * s + column] if mn else b[k * column + s])
    return lanes


@inner
def _add_f32(sums, registers, slot, accumulate):
    if accumulate:
        for l in range(32):
            sums[l] += as_f32(lane_value(registers, slot, l))
    for l in range(32):
        set_lane_value(registers, slot, l, f32_result(sums[l]))


@inner
def _add_f16(low, high, registers, slot, accumulate):
    for l in range(32):
        x, y, raw = low[l], high[l], lane_value(registers, slot, l)
        if accumulate:
            x, y = x + f16_f32(raw & M16), y + f16_f32(raw >> np.uint64(16) & M16)
        bits = f16_of(np.float64(y), RN, False) << np.uint64(16) | f16_of(np.float64(x), RN, False)
        set_lane_value(registers, slot, l, bits)


@inner
def _add_s32(sums, registers, slot, accumulate, saturate):
    for l in range(32):
        x = np.int64(sums[l])
        if accumulate:
            x += np.int64(np.int32(np.uint32(lane_value(registers, slot, l))))
        if saturate:
            x = min(max(x, np.int64(-2147483648)), np.int64(2147483647))
        set_lane_value(registers, slot, l, np.uint64(x) & M32)


@inner
def _multiply(block, a, b, files, accumulate):
    """Adds A times B to D of four warps. accumulate: mask of the warps that keep the old values of D."""
    k, kind, slots = word(block, K), word(block, D_KIND), word(block, D_SLOTS)
    low, high = np.empty(32, np.float32), np.empty(32, np.float32)
    size = np.uint64(4 * k)
    for strip in range(8):
        registers, keep = np.uint64(word(files, strip >> 1)), accumulate >> (strip >> 1) & 1
        rows = np.uint64(a.ctypes.data) + np.uint64(strip) * np.uint64(32) * size
        for eight in range(word(block, N) >> 3):
            columns = np.uint64(b.ctypes.data) + np.uint64(eight) * np.uint64(8) * size
            lane_products(np.uint64(low.ctypes.data), rows, columns, np.uint64(k))
            lane_products(np.uint64(high.ctypes.data), rows, columns + np.uint64(4) * size, np.uint64(k))
            e = 2 * eight + (strip & 1)
            if kind == F16:
                _add_f16(low, high, registers, word(slots, e), keep)
            elif kind == F32:
                _add_f32(low, registers, word(slots, 2 * e), keep)
                _add_f32(high, registers, word(slots, 2 * e + 1), keep)
            else:
                _add_s32(low, registers, word(slots, 2 * e), keep, word(block, SATURATE))
                _add_s32(high, registers, word(slots, 2 * e + 1), keep, word(block, SATURATE))


@inner
def multiply(block, window, limit, a_bits, b_bits, a_files, d_files, index_files, found, accumulate):
    """Computes D of four warps. If a descriptor reaches outside of shared memory, does nothing and returns
    False.

    a_files, d_files, index_files: host address of an array with the addresses of four register files, which
    hold A, D and the indices of a sparse A; found: see `expand`.
    """
    b, legal = _from_shared(block, 1, b_bits, word(block, N), window, limit)
    if not legal:
        return False
    if word(block, IN_REGISTERS):
        a = _from_registers(block, a_files)
    else:
        a, legal = _from_shared(block, 0, a_bits, 64, window, limit)
        if not legal:
            return False
    mn = word(block, A_MN) != 0
    if _sparse(block):
        a, mn = _expanded(block, a, mn, index_files, found), False
    _multiply(block, _lanes_of_a(block, a, mn), _lanes_of_b(block, b), d_files, accumulate)
    return True


@compiled()
def multiply_now(block, window, limit, a_bits, b_bits, a_files, d_files, index_files, found, accumulate):
    return multiply(block, window, limit, a_bits, b_bits, a_files, d_files, index_files, found, accumulate)
