"""Integer arithmetic of the scalar instructions for which numba's operators differ from PTX.

Unsigned and untyped values are uint64 (zero-extended), signed values int64 (sign-extended); W is the width in
bits as uint64. Results may have bits above W, which the caller cuts off.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types

from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.intrinsic import intrinsic

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
    """An LLVM intrinsic with one 64-bit operand (and constant i1 flags)."""

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


@inner
def lo16(a):
    return a & M16


@inner
def hi16(a):
    return (a >> W16) & M16


@inner
def pack16(low, high):
    return (np.uint64(low) & M16) | ((np.uint64(high) & M16) << W16)


@inner
def sext8(a):
    return np.int64(np.int8(a))


@inner
def sext16(a):
    return np.int64(np.int16(a))


@inner
def sext32(a):
    return np.int64(np.int32(a))


@inner
def clamp_s32(a):
    return min(max(a, np.int64(-0x80000000)), np.int64(0x7FFFFFFF))


@inner
def mulhi_u64(a, b):
    a0, a1, b0, b1 = a & M32, a >> W32, b & M32, b >> W32
    middle = a1 * b0 + ((a0 * b0) >> W32)
    low = a0 * b1 + (middle & M32)
    return a1 * b1 + (middle >> W32) + (low >> W32)


@inner
def mulhi_s64(a, b):
    ua, ub = np.uint64(a), np.uint64(b)
    high = mulhi_u64(ua, ub)
    if a < S_ZERO:
        high -= ub
    if b < S_ZERO:
        high -= ua
    return high


@inner
def mulhi_u32(a, b):
    return (a * b) >> W32


@inner
def mulhi_s32(a, b):
    return np.uint64(a * b) >> W32


@inner
def mulhi_u16(a, b):
    return (a * b) >> W16


@inner
def mulhi_s16(a, b):
    return np.uint64(a * b) >> W16


@inner
def mul24_lo_u32(a, b):
    return (a & M24) * (b & M24)


@inner
def mul24_hi_u32(a, b):
    return mul24_lo_u32(a, b) >> W16


@inner
def _sext24(a):
    return np.int64(np.int32((a & M24) << np.uint64(8)) >> np.int32(8))


@inner
def mul24_lo_s32(a, b):
    return np.uint64(_sext24(a) * _sext24(b))


@inner
def mul24_hi_s32(a, b):
    return mul24_lo_s32(a, b) >> W16


@inner
def absdiff(a, b):
    return np.uint64(a) - np.uint64(b) if a > b else np.uint64(b) - np.uint64(a)


@inner
def _udiv(a, b):
    return a // b


@inner
def div_u(a, b, W):
    """The quotient; all ones for a zero divisor, as on an H200 (PTX leaves it to the machine)."""
    return ALL >> (W64 - W) if b == ZERO else _udiv(a, b)


@inner
def rem_u(a, b, W):
    """The remainder; all ones for a zero divisor, as on an H200."""
    return ALL >> (W64 - W) if b == ZERO else a - _udiv(a, b) * b


@inner
def magnitude(a):
    return np.uint64(-a) if a < S_ZERO else np.uint64(a)


@inner
def div_s(a, b, W):
    """The quotient, rounded towards zero; minimum / -1 wraps; -1 for a zero divisor, as on an H200."""
    if b == S_ZERO:
        return np.int64(-1)
    q = np.int64(_udiv(magnitude(a), magnitude(b)))
    return -q if (a < S_ZERO) != (b < S_ZERO) else q


@inner
def rem_s(a, b, W):
    """The remainder, with the sign of the dividend; -1 for a zero divisor, as on an H200."""
    return np.int64(-1) if b == S_ZERO else a - div_s(a, b, W64) * b


@inner
def _mask(W):
    return ALL >> (W64 - W)


@inner
def add_cc(a, b, W):
    return addc_cc(a, b, ZERO, W)


@inner
def addc(a, b, cc, W):
    return np.uint64(a) + np.uint64(b) + cc


@inner
def addc_cc(a, b, cc, W):
    """(a + b + cc at width W, carry out)."""
    mask = _mask(W)
    x = np.uint64(a) & mask
    s = (x + np.uint64(b)) & mask
    t = (s + cc) & mask
    return t, np.uint64(s < x) | np.uint64(t < s)


@inner
def sub_cc(a, b, W):
    return subc_cc(a, b, ONE, W)


@inner
def subc(a, b, cc, W):
    return a - b - (cc ^ ONE)


@inner
def subc_cc(a, b, cc, W):
    """(a - b - borrow at width W, carry out). In and out, CC.CF holds the complement of the borrow, so that
    an addition that reads it adds one if nothing was borrowed (seen on an H200).
    """
    borrow = np.uint64(a < b) | np.uint64((a == b) & (cc == ZERO))
    return (a - b - (cc ^ ONE)) & _mask(W), borrow ^ ONE
