"""Floating-point formats of at most 19 bits, as raw bits in a uint64: conversion to and from float64, and
half-precision arithmetic.

Every such number is exactly representable as float64, so results are computed there and rounded once. Formats
(PTX ISA 5.2.3): f16, bf16, tf32 (high bits of a float32), e4m3, e5m2, e2m3, e3m2, e2m1, and ue8m0 (powers of
two).
"""

from __future__ import annotations

import itertools

import numpy as np

from ptxsim.isa.mathlib.floating import INFINITY32, SIGN32, as_f32, as_f64, f32_bits, f64_bits
from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import M8, ONE, W16, ZERO
from ptxsim.isa.mathlib.soft_float import (
    I1,
    RN,
    RP,
    fma_parts,
    int_parts,
    is_finite,
    round_code,
    stops_at_max,
    unpack,
)

NAN16 = np.uint64(0x7FFF)  # canonical NaN of f16 and bf16
SIGN16 = np.uint64(0x8000)
POW112 = np.float32(2.0**112)
QUIET_NAN64, PAYLOAD64 = np.uint64(0x7FF8000000000000), np.uint64((1 << 52) - 1)
U13, U23, U52 = np.uint64(13), np.uint64(23), np.uint64(52)
INF16, INF32 = np.uint64(0x7C00), INFINITY32


def _format(mbits: int, emin: int, largest: int, infinity: int, nan: int, sign_at: int):
    """The encoders of a format, given its fraction bits, the exponent of its smallest normal number, the
    codes of the largest number, infinity and NaN, and the position of the sign.

    `encode(sign, sig, exp, mode, finite)` and `of(x, mode, finite)` return the bits of sig * 2**exp and of a
    float64 x; with `finite` (.satfinite), numbers that are too large become `largest` instead of `infinity`.
    """
    m, e, at = np.int64(mbits), np.int64(emin), np.uint64(sign_at)
    top, over, canonical = np.uint64(largest), np.uint64(infinity), np.uint64(nan)

    @inner
    def encode(sign, sig, exp, mode, finite):
        code = round_code(sign, sig, exp, m, e, mode)
        if code > top:
            code = top if finite or stops_at_max(sign, mode) else over
        return code | (np.uint64(sign) << at)

    @inner
    def of(x, mode, finite):
        if x != x:
            return canonical
        if not is_finite(x):
            return (top if finite else over) | (np.uint64(x < 0) << at)
        sign, sig, exp = unpack(x)
        return encode(sign, sig, exp, mode, finite)

    return encode, of


f16_encode, f16_of = _format(10, -14, 0x7BFF, 0x7C00, 0x7FFF, 15)
bf16_encode, bf16_of = _format(7, -126, 0x7F7F, 0x7F80, 0x7FFF, 15)
_, _tf32_of = _format(10, -126, 0x3FBFF, 0x3FC00, 0x3FFFF, 18)
_, e4m3_of = _format(3, -6, 0x7E, 0x7F, 0x7F, 7)
_, e5m2_of = _format(2, -14, 0x7B, 0x7C, 0x7F, 7)
# the following formats have neither infinity nor NaN; both become the largest number
_, e2m3_of = _format(3, 0, 0x1F, 0x1F, 0x1F, 5)
_, e3m2_of = _format(2, -2, 0x1F, 0x1F, 0x1F, 5)
_, e2m1_of = _format(1, 0, 0x7, 0x7, 0x7, 3)


@inner
def tf32_of(x, mode, finite):
    """tf32 as a float32 whose 13 low bits are zero."""
    return _tf32_of(x, mode, finite) << U13


@inner
def ue8m0_of(x, mode, finite):
    """The ue8m0 of a float32: its exponent, ignoring the sign; RP rounds up to the next power of two. 0xFF is
    NaN.
    """
    bits = f32_bits(x) & np.uint64(0x7FFFFFFF)
    code = bits >> U23
    if mode == RP and np.uint64(1 << 22) < bits < INF32 and bits & np.uint64(0x7FFFFF) != ZERO:
        code += ONE
    return code - ONE if finite and code == M8 and bits <= INF32 else code


@inner
def ue8m0_bf16(code):
    if code == M8:
        return NAN16
    return np.uint64(0x40) if code == ZERO else code << np.uint64(7)


def _reader(mbits: int, emin: int, sign_at: int, infinity: int, last: int):
    """The decoder of a format: code -> float64. infinity: the code of infinity; codes above `last` are NaN
    (both are out of range if the format has none).

    A NaN keeps its sign and payload and becomes quiet, as on an H200.
    """
    m, bias, at = np.uint64(mbits), np.uint64(emin + 1022), np.uint64(sign_at)
    scale = np.float64(2.0 ** (emin - mbits))
    special, highest = np.uint64(infinity), np.uint64(last)

    @inner
    def read(bits):
        code = bits & ((ONE << at) - ONE)
        if code > highest:
            return as_f64(QUIET_NAN64 | code << (U52 - m) & PAYLOAD64 | (bits >> at & ONE) << np.uint64(63))
        if code == special:
            x = np.inf
        elif code >> m == ZERO:
            x = np.float64(code) * scale
        else:
            x = as_f64(((bias << m) + code) << (U52 - m))
        return -x if bits >> at & ONE else x

    return read


f16_f64 = _reader(10, -14, 15, 0x7C00, 0x7C00)
bf16_f64 = _reader(7, -126, 15, 0x7F80, 0x7F80)
e4m3_f64 = _reader(3, -6, 7, 0x80, 0x7E)
e5m2_f64 = _reader(2, -14, 7, 0x7C, 0x7C)
e2m3_f64 = _reader(3, 0, 5, 0x20, 0x1F)
e3m2_f64 = _reader(2, -2, 5, 0x20, 0x1F)
e2m1_f64 = _reader(1, 0, 3, 0x8, 0x7)


@inner
def bf16_f32(bits):
    return as_f32(bits << W16)


@inner
def f16_f32(bits):
    """f16 -> float32. A multiplication by 2**112 shifts the exponent and normalises subnormal numbers."""
    magnitude = (bits & np.uint64(0x7FFF)) << U13
    sign = (bits & SIGN16) << W16
    if bits & INF16 == INF16:
        return as_f32(magnitude | INF32 | sign)
    return as_f32(f32_bits(as_f32(magnitude) * POW112) | sign)


def _from_nan(mbits: int, infinity: int):
    """`f(a, bits)`: raw `bits`; but if the float64 a is a NaN, a NaN with its sign and as much of its payload
    as fits.

    An H200 converts float64 this way, and no other type.
    """
    drop, top = U52 - np.uint64(mbits), np.uint64(infinity)

    @inner
    def apply(a, bits):
        if a == a:
            return bits
        raw = f64_bits(a) | QUIET_NAN64
        return (raw >> np.uint64(48)) & SIGN16 | top | (raw & PAYLOAD64) >> drop

    return apply


@inner
def f32_nan_f64(a, x):
    """The same for a float32 x; returns raw bits."""
    if a == a:
        return f32_bits(x)
    raw = f64_bits(a) | QUIET_NAN64
    return (raw >> np.uint64(32)) & SIGN32 | INFINITY32 | (raw & PAYLOAD64) >> np.uint64(29)


f16_nan_f64, bf16_nan_f64 = _from_nan(10, 0x7C00), _from_nan(7, 0x7F80)


def _signs(infinity: int):
    """neg and abs of raw bits; like all arithmetic, they have only one NaN as result (seen on an H200)."""
    inf = np.uint64(infinity)

    @inner
    def neg(bits):
        return NAN16 if bits & NAN16 > inf else bits ^ SIGN16

    @inner
    def absolute(bits):
        return NAN16 if bits & NAN16 > inf else bits & NAN16

    return neg, absolute


f16_neg, f16_abs = _signs(0x7C00)
bf16_neg, bf16_abs = _signs(0x7F80)


def _from_int(encode):
    @inner
    def convert(negative, magnitude, mode):
        sig, exp = int_parts(magnitude)
        return encode(negative, sig, exp, mode, False)

    return convert


int_f16, int_bf16 = _from_int(f16_encode), _from_int(bf16_encode)


@inner
def f16_encode_ftz(sign, sig, exp, mode, finite):
    """The f16 of sig * 2**exp; zero if subnormal after rounding to 11 digits with unbounded exponent."""
    if round_code(sign, sig, exp, np.int64(10), np.int64(-15), mode) < np.uint64(2 << 10):
        return SIGN16 if sign else ZERO
    return f16_encode(sign, sig, exp, mode, finite)


@inner
def f16_of_ftz(x, mode, finite):
    if not is_finite(x):
        return f16_of(x, mode, finite)
    sign, sig, exp = unpack(x)
    return f16_encode_ftz(sign, sig, exp, mode, finite)


def _fused(encode, of, read):
    """a * b + c of raw bits, rounded once to nearest even."""

    @inner
    def fma(a, b, c):
        x, y, z = read(a), read(b), read(c)
        if not (is_finite(x) and is_finite(y) and is_finite(z)):
            return of(x * y + z, RN, False)
        sign, sig, exp = fma_parts(x, y, z, RN)
        return encode(sign, sig, exp, RN, False)

    return fma


f16_fma = _fused(f16_encode, f16_of, f16_f64)
f16_fma_ftz = _fused(f16_encode_ftz, f16_of, f16_f64)
bf16_fma = _fused(bf16_encode, bf16_of, bf16_f64)


def _limits(infinity: int, one: int, smallest: int):
    """Sign and range helpers of a 16-bit format: `sat` to [0, 1], `relu`, `ftz` of subnormal numbers."""
    inf, unit, normal = np.uint64(infinity), np.uint64(one), np.uint64(smallest)

    @inner
    def sat(bits):
        return ZERO if bits > inf else min(bits, unit)

    @inner
    def relu(bits):
        if bits & NAN16 > inf:
            return NAN16
        return bits if bits < SIGN16 else ZERO

    @inner
    def ftz(bits):
        return bits & SIGN16 if bits & NAN16 < normal else bits

    return sat, relu, ftz


f16_sat, f16_relu, f16_ftz = _limits(0x7C00, 0x3C00, 0x0400)
_, bf16_relu, bf16_ftz = _limits(0x7F80, 0x3F80, 0x0080)


def _extreme16(infinity: int, minimum: bool, nan_wins: bool, xorsign: bool):
    """min or max of raw bits, with -0 < +0, as for float32 (PTX ISA 9.7.4)."""
    inf = np.uint64(infinity)

    @inner
    def order(bits):
        """An integer that grows with the number."""
        return -np.int64(bits & NAN16) - I1 if bits & SIGN16 else np.int64(bits)

    @inner
    def pick(a, b):
        sign = (a ^ b) & SIGN16 if xorsign else ZERO
        if xorsign:
            a, b = a & NAN16, b & NAN16
        nan_a, nan_b = a & NAN16 > inf, b & NAN16 > inf
        if (nan_a and nan_b) or (nan_wins and (nan_a or nan_b)):
            return NAN16
        if nan_a or nan_b:
            return sign | (b if nan_a else a)
        return sign | (a if (order(a) < order(b)) == minimum else b)

    return pick


def _extremes(infinity: int):
    """min, min.NaN, max and max.NaN; then all four with .xorsign."""
    which = itertools.product((False, True), (True, False), (False, True))
    return (_extreme16(infinity, minimum, nan_wins, xorsign) for xorsign, minimum, nan_wins in which)


f16_min, f16_min_nan, f16_max, f16_max_nan, *_signed = _extremes(0x7C00)
f16_xorsign_min, f16_xorsign_min_nan, f16_xorsign_max, f16_xorsign_max_nan = _signed
bf16_min, bf16_min_nan, bf16_max, bf16_max_nan, *_signed = _extremes(0x7F80)
bf16_xorsign_min, bf16_xorsign_min_nan, bf16_xorsign_max, bf16_xorsign_max_nan = _signed
