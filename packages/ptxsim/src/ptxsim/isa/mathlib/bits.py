"""Bit fields, shifts, permutes, look-up tables and packed dot products of the scalar instructions.

Types and widths are as in isa/mathlib/integer.py: uint64 and int64, W is the width in bits.
"""

from __future__ import annotations

import numpy as np

from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import ALL, M8, M32, ONE, S_ONE, S_ZERO, TWO, W32, W64, ZERO, clz


@inner
def bfind_u(a):
    """The position of the highest set bit; all ones if there is none."""
    return np.uint64(63) - clz(a)


@inner
def bfind_s(a):
    """The position of the highest bit that differs from the sign; all ones if there is none."""
    return bfind_u(np.uint64(~a if a < S_ZERO else a))


@inner
def bfind_shift(position, W):
    return position if position == ALL else W - ONE - position


@inner
def fns(mask, base, offset):
    """The position of the offset-th set bit from `base` upwards (downwards if `offset` is negative); all ones
    if there is none.
    """
    position = np.int64(base)
    step = S_ONE if offset >= S_ZERO else -S_ONE
    left = max(abs(offset) - S_ONE, S_ZERO)
    while S_ZERO <= position < np.int64(32):
        if (mask >> np.uint64(position)) & ONE:
            if left == S_ZERO:
                return np.uint64(position)
            left -= S_ONE
        if offset == S_ZERO:
            break
        position += step
    return M32


@inner
def bfe_u(a, b, c, W):
    position, length = b & M8, c & M8
    if position >= W:
        return ZERO
    field = a >> position
    return field if length >= W else field & ((ONE << length) - ONE)


@inner
def bfe_s(a, b, c, W):
    """bfe of signed types. The sign is bit position + length - 1 of the source, or its top bit if the field
    extends beyond it.
    """
    position, length = b & M8, c & M8
    if length == ZERO:
        return ZERO
    sign = (a >> min(position + length - ONE, W - ONE)) & ONE
    taken = min(length, W - min(position, W))
    high = ALL << taken if taken < W64 else ZERO
    return bfe_u(a, b, c, W) & ~high | (high if sign else ZERO)


@inner
def bfi(a, b, c, d, W):
    position, length = c & M8, d & M8
    if position >= W:
        return b
    field = (ALL if length >= W64 else (ONE << length) - ONE) << position
    return (b & ~field) | ((a << position) & field)


@inner
def szext_wrap_u(a, b):
    return a & ((ONE << (b & np.uint64(31))) - ONE)


@inner
def szext_wrap_s(a, b):
    n = b & np.uint64(31)
    value = szext_wrap_u(a, n)
    negative = (value >> (n - ONE)) & ONE if n != ZERO else ZERO
    return value | (ALL << n) if negative else value


@inner
def szext_clamp_u(a, b):
    return a if b >= W32 else szext_wrap_u(a, b)


@inner
def szext_clamp_s(a, b):
    return a if b >= W32 else szext_wrap_s(a, b)


@inner
def bmsk_clamp(a, b):
    return ZERO if a >= W32 else ((ONE << min(b, W32)) - ONE) << a


@inner
def bmsk_wrap(a, b):
    return ((ONE << (b & np.uint64(31))) - ONE) << (a & np.uint64(31))


def _dot(count: int, a_bits: int, a_signed: bool, b_signed: bool):
    """A sum of `count` products of packed integers: `a_bits`-bit parts of a times 8-bit parts of b."""

    @inner
    def part(word, index, bits, signed):
        shift = np.int64(64) - np.int64(bits)
        top = np.int64(word >> np.uint64(index * bits)) << shift
        return top >> shift if signed else np.int64(np.uint64(top) >> np.uint64(shift))

    @inner
    def dot(a, b):
        total = S_ZERO
        for i in range(count):
            total += part(a, i, a_bits, a_signed) * part(b, i, 8, b_signed)
        return np.uint64(total)

    return dot


dp4a_u32_u32, dp4a_u32_s32 = _dot(4, 8, False, False), _dot(4, 8, False, True)
dp4a_s32_u32, dp4a_s32_s32 = _dot(4, 8, True, False), _dot(4, 8, True, True)
dp2a_u32_u32, dp2a_u32_s32 = _dot(2, 16, False, False), _dot(2, 16, False, True)
dp2a_s32_u32, dp2a_s32_s32 = _dot(2, 16, True, False), _dot(2, 16, True, True)


@inner
def _mux(select, ones, zeros):
    """Per bit: `ones` if `select` is 1, else `zeros`."""
    return zeros ^ (select & (ones ^ zeros))


@inner
def _lut(table, low):
    """Bits low and low + 1 of the table as masks: (result if c is 0, result if c is 1)."""
    return ZERO - ((table >> low) & ONE), ZERO - ((table >> (low + ONE)) & ONE)


@inner
def lop3(a, b, c, table):
    """lop3: bit k of the table is the result if (a, b, c) are the binary digits of k."""
    n0, n1 = _lut(table, ZERO)
    n2, n3 = _lut(table, TWO)
    n4, n5 = _lut(table, np.uint64(4))
    n6, n7 = _lut(table, np.uint64(6))
    without_a = _mux(b, _mux(c, n3, n2), _mux(c, n1, n0))
    with_a = _mux(b, _mux(c, n7, n6), _mux(c, n5, n4))
    return _mux(a, with_a, without_a) & M32


@inner
def lop3_or(a, b, c, table, p):
    value = lop3(a, b, c, table)
    return value, (value != ZERO) or p


@inner
def lop3_and(a, b, c, table, p):
    value = lop3(a, b, c, table)
    return value, (value != ZERO) and p


@inner
def shift_clamp(n):
    return min(n, W32)


@inner
def shift_wrap(n):
    return n & np.uint64(31)


@inner
def shf_l(a, b, n):
    return (((b << W32) | a) << n) >> W32


@inner
def shf_r(a, b, n):
    return ((b << W32) | a) >> n


@inner
def shl(a, n):
    return a << n if n < W64 else ZERO


@inner
def shr_u(a, n):
    return a >> n if n < W64 else ZERO


@inner
def shr_s(a, n):
    return a >> np.int64(min(n, np.uint64(63)))


@inner
def prmt(a, b, control):
    """Four bytes of {b, a}, each selected by a nibble; if its top bit is set, the byte's sign instead."""
    source = (b << W32) | a
    value = ZERO
    for i in range(4):
        nibble = control >> np.uint64(4 * i)
        byte = (source >> ((nibble & np.uint64(7)) << np.uint64(3))) & M8
        if nibble & np.uint64(8):
            byte = M8 * (byte >> np.uint64(7))
        value |= byte << np.uint64(8 * i)
    return value
