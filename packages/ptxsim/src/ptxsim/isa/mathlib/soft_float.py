"""Rounding in integer arithmetic: to any IEEE-like format up to 53 significant bits, in all rounding
directions of PTX.

A number is unpacked into sign, significand and exponent (value = significand * 2**exponent). Results with
more digits than fit have a sticky lowest bit, so that each operation rounds exactly once, in `round_code`. A
format is given by `mbits` (stored fraction bits) and `emin` (exponent of its smallest normal number). A
"code" is the bit pattern without the sign; it may exceed that of the largest finite number.
"""

from __future__ import annotations

import numpy as np

from ptxsim.isa.mathlib.floating import (
    SIGN64,
    TINY32,
    as_f32,
    as_f64,
    f32_bits,
    f64_bits,
    fma_f32,
    fma_f64,
    ftz,
)
from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import ALL, ONE, TWO, W64, ZERO, clz, mulhi_u64

# Rounding directions: nearest even, to zero, down, up, nearest with ties away from zero
RN, RZ, RM, RP, RNA = (np.int64(i) for i in range(5))
IMPLICIT64 = np.uint64(1 << 52)
I0, I1, I2 = np.int64(0), np.int64(1), np.int64(2)
U63 = np.uint64(63)


@inner
def _rounds_up(sign, odd, rest, half, mode):
    """Whether a magnitude is rounded up. rest: dropped part, out of 2 * `half`; odd: the last bit is 1."""
    if rest == ZERO or mode == RZ:
        return False
    if mode == RN:
        return rest > half or (rest == half and odd)
    if mode == RNA:
        return rest >= half
    return sign == (mode == RM)


@inner
def round_code(sign, sig, exp, mbits, emin, mode):
    """The code of sig * 2**exp, 0 <= sig < 2**63; all integers but sig are int64."""
    if sig == ZERO:
        return ZERO
    top = np.int64(U63 - clz(sig)) + exp  # exponent of the leading bit
    drop = max(top, emin) - mbits - exp
    scale = np.uint64(max(top - emin, I0)) << np.uint64(mbits)
    if drop <= I0:
        return scale + (sig << np.uint64(-drop))
    if drop > np.int64(63):  # less than half of the smallest subnormal
        sig, drop = ONE, np.int64(2)
    kept = sig >> np.uint64(drop)
    half = ONE << np.uint64(drop - I1)
    rest = sig & (half + half - ONE)
    return scale + kept + np.uint64(_rounds_up(sign, (kept & ONE) != ZERO, rest, half, mode))


@inner
def stops_at_max(sign, mode):
    """Whether numbers beyond the largest finite number become that number instead of infinity."""
    return mode == RZ or (mode == RM and not sign) or (mode == RP and sign)


@inner
def unpack(x):
    """(sign, significand, exponent) of a finite float64."""
    bits = f64_bits(x)
    field = np.int64((bits >> np.uint64(52)) & np.uint64(0x7FF))
    fraction = bits & (IMPLICIT64 - ONE)
    sig = fraction | IMPLICIT64 if field > I0 else fraction
    return bits >> U63 != ZERO, sig, max(field, I1) - np.int64(1075)


def _packer(mbits: int, emin: int, infinity: int, as_float, sign_at: int):
    """`pack(sign, sig, exp, mode)`: sig * 2**exp as a float of this format."""
    m, e, over, at = np.int64(mbits), np.int64(emin), np.uint64(infinity), np.uint64(sign_at)

    @inner
    def pack(sign, sig, exp, mode):
        code = round_code(sign, sig, exp, m, e, mode)
        if code >= over:
            code = over - ONE if stops_at_max(sign, mode) else over
        return as_float(code | (np.uint64(sign) << at))

    return pack


pack32 = _packer(23, -126, 0x7F800000, as_f32, 31)
pack64 = _packer(52, -1022, 0x7FF0000000000000, as_f64, 63)


@inner
def _shl128(hi, lo, n):
    """(hi, lo) << n, 0 <= n < 128."""
    if n >= W64:
        return lo << (n - W64), ZERO
    if n == ZERO:
        return hi, lo
    return (hi << n) | (lo >> (W64 - n)), lo << n


@inner
def _shr128_jam(hi, lo, n):
    """(hi, lo) >> n; the lowest bit is set if a one was lost."""
    if n == ZERO:
        return hi, lo
    if n >= np.uint64(128):
        return ZERO, np.uint64((hi | lo) != ZERO)
    if n >= W64:
        lost = lo | (hi << (np.uint64(128) - n) if n > W64 else ZERO)
        return ZERO, (hi >> (n - W64)) | np.uint64(lost != ZERO)
    lost = lo << (W64 - n)
    return hi >> n, (lo >> n) | (hi << (W64 - n)) | np.uint64(lost != ZERO)


@inner
def _normal128(hi, lo, exp):
    """The same number, shifted so that its leading bit is at position 125."""
    zeros = clz(hi) if hi != ZERO else W64 + clz(lo)
    if zeros < TWO:
        hi, lo = _shr128_jam(hi, lo, TWO - zeros)
    else:
        hi, lo = _shl128(hi, lo, zeros - TWO)
    return hi, lo, exp + I2 - np.int64(zeros)


@inner
def _narrow128(sign, hi, lo, exp):
    """A non-zero 128-bit magnitude as a 62-bit one with a sticky bit."""
    hi, lo, exp = _normal128(hi, lo, exp)
    return sign, hi | np.uint64(lo != ZERO), exp + np.int64(64)


@inner
def fma_parts(a, b, c, mode):
    """(sign, significand, exponent) of a * b + c of finite float64, exact except for a sticky bit."""
    sa, ma, ea = unpack(a)
    sb, mb, eb = unpack(b)
    sc, mc, ec = unpack(c)
    sp = sa != sb
    hi, lo = mulhi_u64(ma, mb), ma * mb
    if (hi | lo) == ZERO:
        if mc == ZERO:
            return (sp if sp == sc else mode == RM), ZERO, I0
        return sc, mc, ec
    if mc == ZERO:
        return _narrow128(sp, hi, lo, ea + eb)
    hi, lo, ep = _normal128(hi, lo, ea + eb)
    hc, lc, ec = _normal128(ZERO, mc, ec)
    if ep >= ec:
        hc, lc = _shr128_jam(hc, lc, np.uint64(ep - ec))
    else:
        hi, lo = _shr128_jam(hi, lo, np.uint64(ec - ep))
    return _sum128(sp, hi, lo, sc, hc, lc, max(ep, ec), mode)


@inner
def _sum128(sp, hi, lo, sc, hc, lc, exp, mode):
    """The sum of two signed magnitudes below 2**126."""
    if sp == sc:
        low = lo + lc
        return _narrow128(sp, hi + hc + np.uint64(low < lo), low, exp)
    if hi == hc and lo == lc:
        return mode == RM, ZERO, I0
    if hi < hc or (hi == hc and lo < lc):
        sp, hi, lo, hc, lc = sc, hc, lc, hi, lo
    return _narrow128(sp, hi - hc - np.uint64(lo < lc), lo - lc, exp)


@inner
def div_parts(a, b):
    """(sign, significand, exponent) of a / b of finite, non-zero float64."""
    sa, ma, ea = unpack(a)
    sb, mb, eb = unpack(b)
    up_a, up_b = clz(ma), clz(mb)
    rest, divisor = (ma << up_a) >> TWO, (mb << up_b) >> TWO
    quotient = ZERO
    for _ in range(60):
        quotient <<= ONE
        if rest >= divisor:
            rest -= divisor
            quotient |= ONE
        rest <<= ONE
    exp = (ea - np.int64(up_a)) - (eb - np.int64(up_b)) - np.int64(59)
    return sa != sb, (quotient << ONE) | np.uint64(rest != ZERO), exp - I1


@inner
def sqrt_parts(a):
    """(sign, significand, exponent) of the square root of a finite, positive float64, digit by digit."""
    _, m, e = unpack(a)
    up = clz(m)
    up -= (up ^ np.uint64(e)) & ONE  # keeps the exponent even
    m, e = m << up, e - np.int64(up)
    root = rest = ZERO
    for i in range(60):
        pair = (m >> np.uint64(62 - 2 * i)) & np.uint64(3) if i < 32 else ZERO
        rest = (rest << TWO) | pair
        root <<= ONE
        if rest > root + root:
            rest -= root + root + ONE
            root |= ONE
    return False, (root << ONE) | np.uint64(rest != ZERO), e // I2 - np.int64(29)


@inner
def is_finite(x):
    return abs(x) < np.inf


@inner
def fma64(a, b, c, mode):
    if not (is_finite(a) and is_finite(b) and is_finite(c)):
        return fma_f64(a, b, c)
    sign, sig, exp = fma_parts(a, b, c, mode)
    return pack64(sign, sig, exp, mode)


@inner
def fma_odd(a, b, c, mode):
    """a * b + c of finite float32 as a float64 rounded to odd. Rounding it again gives the same result as
    rounding the exact number, because its last bit is 1 if any bits were lost, so that it is neither a
    shorter number nor halfway between two.
    """
    product, addend = np.float64(a) * np.float64(b), np.float64(c)  # exact
    total = product + addend
    back = total - product
    lost = (product - (total - back)) + (addend - back)  # exact
    bits = f64_bits(total)
    if mode == RM and total == 0:  # the sum of two zeros, or of opposites
        bits |= (f64_bits(product) | f64_bits(addend)) & SIGN64
    if lost != 0 and bits & ONE == ZERO:
        bits += ONE if (lost > 0) == (total > 0) else ALL
    return as_f64(bits)


@inner
def fma32(a, b, c, mode):
    if not (is_finite(a) and is_finite(b) and is_finite(c)):
        return fma_f32(a, b, c)
    return f32_of(fma_odd(a, b, c, mode), mode)


@inner
def mul64(a, b, mode):
    return fma64(a, b, np.copysign(np.float64(0), a) * np.copysign(np.float64(1), b), mode)


@inner
def mul32(a, b, mode):
    return f32_of(np.float64(a) * np.float64(b), mode)


@inner
def int_parts(magnitude):
    """(significand, exponent) of a 64-bit magnitude; a long one is shifted by two bits, with a sticky bit."""
    if magnitude >> np.uint64(62) == ZERO:
        return magnitude, I0
    return (magnitude >> TWO) | np.uint64(magnitude & np.uint64(3) != ZERO), I2


def _directed(pack):
    """div, sqrt and conversion of integers in all rounding directions, to the format of `pack`."""

    @inner(error_model="numpy")
    def div(a, b, mode):
        if mode == RN or not (is_finite(a) and is_finite(b) and a != 0 and b != 0):
            return a / b
        sign, sig, exp = div_parts(np.float64(a), np.float64(b))
        return pack(sign, sig, exp, mode)

    @inner
    def sqrt(a, mode):
        if mode == RN or not (is_finite(a) and a > 0):
            return np.sqrt(a)
        sign, sig, exp = sqrt_parts(np.float64(a))
        return pack(sign, sig, exp, mode)

    @inner
    def from_int(negative, magnitude, mode):
        sig, exp = int_parts(magnitude)
        return pack(negative, sig, exp, mode)

    return div, sqrt, from_int


div32, sqrt32, int_f32 = _directed(pack32)
div64, sqrt64, int_f64 = _directed(pack64)


@inner
def mul32_ftz(a, b, mode):
    return f32_of_ftz(np.float64(a) * np.float64(b), mode)


@inner
def fma32_ftz(a, b, c, mode):
    if not (is_finite(a) and is_finite(b) and is_finite(c)):
        return fma_f32(a, b, c)
    return f32_of_ftz(fma_odd(a, b, c, mode), mode)


@inner
def div32_ftz(a, b, mode):
    x = div32(a, b, mode)
    if abs(x) != TINY32:
        return ftz(x)
    sign, sig, exp = div_parts(np.float64(a), np.float64(b))
    below = round_code(sign, sig, exp, np.int64(23), np.int64(-127), mode) < np.uint64(2 << 23)
    return np.copysign(np.float32(0), x) if below else x


@inner
def div_approx(a, b):
    """div.approx: a divisor beyond 2**126 gives zero, or NaN for an infinite dividend (PTX ISA 9.7.3)."""
    if np.float32(2.0**126) < abs(b) < np.inf:
        return np.copysign(np.float32(0), a) * np.copysign(np.float32(1), b) if abs(a) < np.inf else a - a
    return div32(a, b, RN)


@inner
def f32_of(x, mode):
    """A float64 as float32: the nearest one, or its neighbour in the rounding direction."""
    nearest = np.float32(x)
    rounded, exact, bits = abs(np.float64(nearest)), abs(x), f32_bits(nearest)
    if mode == RN or not is_finite(x) or rounded == exact:
        return nearest
    if mode == RZ or (mode == RM) == (x > 0):
        return as_f32(bits - ONE) if rounded > exact else nearest
    return as_f32(bits + ONE) if rounded < exact else nearest


@inner
def f32_of_ftz(x, mode):
    """f32_of with .ftz. Underflow is detected after rounding to 24 digits with unbounded exponent, as on an
    H200; doubling the number keeps 24 digits.
    """
    nearest, twice = f32_of(x, mode), f32_of(x + x, mode)
    return np.copysign(np.float32(0), nearest) if abs(twice) < TINY32 + TINY32 else nearest


@inner
def relu_f64(x):
    """Replaces negative numbers by zero; keeps NaN."""
    return x if x > 0 or x != x else np.float64(0)


@inner
def f64_sat(x):
    """Clamps to [0, 1]; NaN becomes +0."""
    return min(x, np.float64(1)) if x > 0 else np.float64(0)


@inner
def f64_s(x, W, nan):
    """An integral float64 as a signed integer of W bits, saturated; `nan` for a NaN."""
    if x != x:
        return nan
    limit = np.float64(ONE << (W - ONE))
    if x >= limit:
        return np.int64((ONE << (W - ONE)) - ONE)
    return np.int64(x) if x > -limit else -np.int64((ONE << (W - ONE)) - ONE) - I1


@inner
def f64_u(x, W, nan):
    """The same for an unsigned integer."""
    if x != x:
        return nan
    limit = np.float64(ONE << (W - ONE)) * np.float64(2)
    if x >= limit:
        return ALL >> (W64 - W)
    return np.uint64(x) if x > 0 else ZERO
