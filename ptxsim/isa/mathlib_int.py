"""Integer helpers of the scalar instructions: what numba's operators do not say exactly as PTX does.

Unsigned and untyped values are uint64 (zero-extended), signed ones int64 (sign-extended); W is the width
in bits as uint64. Results may carry bits above W: the caller cuts them off.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.extending import intrinsic

ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
W8, W16, W32, W64 = np.uint64(8), np.uint64(16), np.uint64(32), np.uint64(64)
M4, M8, M16, M24, M32 = (
    np.uint64(0xF),
    np.uint64(0xFF),
    np.uint64(0xFFFF),
    np.uint64(0xFFFFFF),
    np.uint64(0xFFFFFFFF),
)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
S_ZERO, S_ONE = np.int64(0), np.int64(1)


def _unary(name: str, *flags: int):
    """An LLVM intrinsic of one 64-bit operand (and constant i1 flags)."""

    @intrinsic
    def call(typingctx, a):
        def codegen(context, builder, signature, args):
            i64, i1 = ir.IntType(64), ir.IntType(1)
            kind = ir.FunctionType(i64, [i64] + [i1] * len(flags))
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            return builder.call(function, [args[0], *(ir.Constant(i1, flag) for flag in flags)])

        return types.uint64(types.uint64), codegen

    return call


popc = _unary("llvm.ctpop.i64")
clz = _unary("llvm.ctlz.i64", 0)  # 64 for zero
brev = _unary("llvm.bitreverse.i64")


@njit
def lo16(a):
    return a & M16


@njit
def hi16(a):
    return (a >> W16) & M16


@njit
def pack16(low, high):
    return (np.uint64(low) & M16) | ((np.uint64(high) & M16) << W16)


@njit
def sext8(a):
    return np.int64(np.int8(a))


@njit
def sext16(a):
    return np.int64(np.int16(a))


@njit
def sext32(a):
    return np.int64(np.int32(a))


@njit
def clamp_s32(a):
    return min(max(a, np.int64(-0x80000000)), np.int64(0x7FFFFFFF))


@njit
def mulhi_u64(a, b):
    a0, a1, b0, b1 = a & M32, a >> W32, b & M32, b >> W32
    middle = a1 * b0 + ((a0 * b0) >> W32)
    low = a0 * b1 + (middle & M32)
    return a1 * b1 + (middle >> W32) + (low >> W32)


@njit
def mulhi_s64(a, b):
    ua, ub = np.uint64(a), np.uint64(b)
    high = mulhi_u64(ua, ub)
    if a < S_ZERO:
        high -= ub
    if b < S_ZERO:
        high -= ua
    return high


@njit
def mulhi_u32(a, b):
    return (a * b) >> W32


@njit
def mulhi_s32(a, b):
    return np.uint64(a * b) >> W32


@njit
def mulhi_u16(a, b):
    return (a * b) >> W16


@njit
def mulhi_s16(a, b):
    return np.uint64(a * b) >> W16


@njit
def mullo_any(a, b):
    return np.uint64(a) * np.uint64(b)


mullo_u32 = mullo_s32 = mullo_u64 = mullo_s64 = mullo_any


@njit
def mul24_lo_u32(a, b):
    return (a & M24) * (b & M24)


@njit
def mul24_hi_u32(a, b):
    return mul24_lo_u32(a, b) >> W16


@njit
def _sext24(a):
    return np.int64(np.int32((a & M24) << np.uint64(8)) >> np.int32(8))


@njit
def mul24_lo_s32(a, b):
    return np.uint64(_sext24(a) * _sext24(b))


@njit
def mul24_hi_s32(a, b):
    return mul24_lo_s32(a, b) >> W16


@njit
def absdiff(a, b):
    return np.uint64(a) - np.uint64(b) if a > b else np.uint64(b) - np.uint64(a)


@njit
def _udiv(a, b):
    return a // b


@njit
def div_u(a, b, W):
    """Quotient; all ones for a zero divisor, as an H200 gives (PTX leaves it to the machine)."""
    return ALL >> (W64 - W) if b == ZERO else _udiv(a, b)


@njit
def rem_u(a, b, W):
    """Remainder; all ones for a zero divisor, as an H200 gives."""
    return ALL >> (W64 - W) if b == ZERO else a - _udiv(a, b) * b


@njit
def magnitude(a):
    return np.uint64(-a) if a < S_ZERO else np.uint64(a)


@njit
def div_s(a, b, W):
    """Quotient towards zero; minimum / -1 wraps; -1 for a zero divisor, as an H200 gives."""
    if b == S_ZERO:
        return np.int64(-1)
    q = np.int64(_udiv(magnitude(a), magnitude(b)))
    return -q if (a < S_ZERO) != (b < S_ZERO) else q


@njit
def rem_s(a, b, W):
    """Remainder with the sign of the dividend; -1 for a zero divisor, as an H200 gives."""
    return np.int64(-1) if b == S_ZERO else a - div_s(a, b, W64) * b


@njit
def _mask(W):
    return ALL >> (W64 - W)


@njit
def add_cc(a, b, W):
    return addc_cc(a, b, ZERO, W)


@njit
def addc(a, b, cc, W):
    return np.uint64(a) + np.uint64(b) + cc


@njit
def addc_cc(a, b, cc, W):
    """a + b + cc at width W, and the carry out."""
    mask = _mask(W)
    x = np.uint64(a) & mask
    s = (x + np.uint64(b)) & mask
    t = (s + cc) & mask
    return t, np.uint64(s < x) | np.uint64(t < s)


@njit
def sub_cc(a, b, W):
    return subc_cc(a, b, ZERO, W)


@njit
def subc(a, b, cc, W):
    return a - b - cc


@njit
def subc_cc(a, b, cc, W):
    """a - b - cc at width W, and the borrow out."""
    borrow = np.uint64(a < b) | np.uint64((a == b) & (cc != ZERO))
    return (a - b - cc) & _mask(W), borrow


@njit
def bfind_u(a):
    """Position of the highest set bit, all ones for none."""
    return np.uint64(63) - clz(a)


@njit
def bfind_s(a):
    """Position of the highest bit that differs from the sign."""
    return bfind_u(np.uint64(~a if a < S_ZERO else a))


@njit
def bfind_shift(position, W):
    return position if position == ALL else W - ONE - position


@njit
def fns(mask, base, offset):
    """Position of the offset-th set bit from `base` upwards (downwards if negative), all ones for none."""
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


@njit
def bfe_u(a, b, c, W):
    position, length = b & M8, c & M8
    if position >= W:
        return ZERO
    field = a >> position
    return field if length >= W else field & ((ONE << length) - ONE)


@njit
def bfe_s(a, b, c, W):
    """Sign: bit position + length - 1 of the source, or its top bit where the field reaches beyond it."""
    position, length = b & M8, c & M8
    if length == ZERO:
        return ZERO
    sign = (a >> min(position + length - ONE, W - ONE)) & ONE
    taken = min(length, W - min(position, W))
    high = ALL << taken if taken < W64 else ZERO
    return bfe_u(a, b, c, W) & ~high | (high if sign else ZERO)


@njit
def bfi(a, b, c, d, W):
    position, length = c & M8, d & M8
    if position >= W:
        return b
    field = (ALL if length >= W64 else (ONE << length) - ONE) << position
    return (b & ~field) | ((a << position) & field)


@njit
def szext_wrap_u(a, b):
    return a & ((ONE << (b & np.uint64(31))) - ONE)


@njit
def szext_wrap_s(a, b):
    n = b & np.uint64(31)
    value = szext_wrap_u(a, n)
    negative = (value >> (n - ONE)) & ONE if n != ZERO else ZERO
    return value | (ALL << n) if negative else value


@njit
def szext_clamp_u(a, b):
    return a if b >= W32 else szext_wrap_u(a, b)


@njit
def szext_clamp_s(a, b):
    return a if b >= W32 else szext_wrap_s(a, b)


@njit
def bmsk_clamp(a, b):
    return ZERO if a >= W32 else ((ONE << min(b, W32)) - ONE) << a


@njit
def bmsk_wrap(a, b):
    return ((ONE << (b & np.uint64(31))) - ONE) << (a & np.uint64(31))


def _dot(count: int, a_bits: int, a_signed: bool, b_signed: bool):
    """A sum of `count` products of packed integers: 8-bit parts of b with `a_bits`-bit parts of a."""

    @njit
    def part(word, index, bits, signed):
        shift = np.int64(64) - np.int64(bits)
        top = np.int64(word >> np.uint64(index * bits)) << shift
        return top >> shift if signed else np.int64(np.uint64(top) >> np.uint64(shift))

    @njit
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


@njit
def cnot(a):
    return ONE if a == ZERO else ZERO


@njit
def _mux(select, ones, zeros):
    """Per bit: `ones` where `select` is 1, else `zeros`."""
    return zeros ^ (select & (ones ^ zeros))


@njit
def _lut(table, low):
    """Bits low and low + 1 of the table as a function of c: what to use where c is 0, and where it is 1."""
    return ZERO - ((table >> low) & ONE), ZERO - ((table >> (low + ONE)) & ONE)


@njit
def lop3(a, b, c, table):
    """Bit k of the table is the result where (a, b, c) spell k in binary."""
    n0, n1 = _lut(table, ZERO)
    n2, n3 = _lut(table, TWO)
    n4, n5 = _lut(table, np.uint64(4))
    n6, n7 = _lut(table, np.uint64(6))
    without_a = _mux(b, _mux(c, n3, n2), _mux(c, n1, n0))
    with_a = _mux(b, _mux(c, n7, n6), _mux(c, n5, n4))
    return _mux(a, with_a, without_a) & M32


@njit
def lop3_or(a, b, c, table, p):
    value = lop3(a, b, c, table)
    return value, (value != ZERO) or p


@njit
def lop3_and(a, b, c, table, p):
    value = lop3(a, b, c, table)
    return value, (value != ZERO) and p


@njit
def shift_clamp(n):
    return min(n, W32)


@njit
def shift_wrap(n):
    return n & np.uint64(31)


@njit
def shf_l(a, b, n):
    return (((b << W32) | a) << n) >> W32


@njit
def shf_r(a, b, n):
    return ((b << W32) | a) >> n


@njit
def shl(a, n):
    return a << n if n < W64 else ZERO


@njit
def shr_u(a, n):
    return a >> n if n < W64 else ZERO


@njit
def shr_s(a, n):
    return a >> np.int64(min(n, np.uint64(63)))


@njit
def prmt(a, b, control):
    """Four bytes of {b, a}, each picked by a nibble whose top bit asks for the byte's sign instead."""
    source = (b << W32) | a
    value = ZERO
    for i in range(4):
        nibble = control >> np.uint64(4 * i)
        byte = (source >> ((nibble & np.uint64(7)) << np.uint64(3))) & M8
        if nibble & np.uint64(8):
            byte = M8 * (byte >> np.uint64(7))
        value |= byte << np.uint64(8 * i)
    return value
