"""Exact reference arithmetic for the float tests: rationals, rounded once into any small format.

Independent of ptxsim: a number is a sign and a `fractions.Fraction` (or "inf", "nan"); a format is defined by
its fraction bits, the exponent of its smallest normal number, and three codes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    bits: int  # width with the sign
    fraction: int
    emin: int
    largest: int  # code of the largest finite number
    infinity: int | None
    nan: int


F16 = Format(16, 10, -14, 0x7BFF, 0x7C00, 0x7FFF)
BF16 = Format(16, 7, -126, 0x7F7F, 0x7F80, 0x7FFF)
TF32 = Format(19, 10, -126, 0x3FBFF, 0x3FC00, 0x3FFFF)
F32 = Format(32, 23, -126, 0x7F7FFFFF, 0x7F800000, 0x7FFFFFFF)
F64 = Format(64, 52, -1022, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000000)
E4M3 = Format(8, 3, -6, 0x7E, None, 0x7F)
E5M2 = Format(8, 2, -14, 0x7B, 0x7C, 0x7F)
E2M3 = Format(6, 3, 0, 0x1F, None, 0x1F)
E3M2 = Format(6, 2, -2, 0x1F, None, 0x1F)
E2M1 = Format(4, 1, 0, 0x7, None, 0x7)
FORMATS = {
    **{"f16": F16, "bf16": BF16, "tf32": TF32, "f32": F32, "f64": F64},
    **{"e4m3": E4M3, "e5m2": E5M2, "e2m3": E2M3, "e3m2": E3M2, "e2m1": E2M1},
}


@dataclass(frozen=True)
class Number:
    """A value of a float format. `magnitude` is a Fraction, "inf" or "nan"."""

    negative: bool
    magnitude: Fraction | str

    @property
    def is_nan(self) -> bool:
        return self.magnitude == "nan"

    @property
    def is_inf(self) -> bool:
        return self.magnitude == "inf"

    @property
    def signed(self) -> Fraction:
        return -self.magnitude if self.negative else self.magnitude


def decode(code: int, fmt: Format) -> Number:
    """The number that a bit pattern represents."""
    sign = fmt.bits - 1
    negative, code = bool(code >> sign & 1), code & ((1 << sign) - 1)
    if code == fmt.infinity:
        return Number(negative, "inf")
    if code > fmt.largest:
        return Number(negative, "nan")
    field, fraction = code >> fmt.fraction, code & ((1 << fmt.fraction) - 1)
    if field:
        return Number(
            negative,
            Fraction((1 << fmt.fraction) + fraction) * Fraction(2) ** (field - 1 + fmt.emin - fmt.fraction),
        )
    return Number(negative, Fraction(fraction) * Fraction(2) ** (fmt.emin - fmt.fraction))


def _floor_log2(x: Fraction) -> int:
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def _up(negative: bool, whole: int, rest: Fraction, mode: str) -> bool:
    if rest == 0 or mode == "rz":
        return False
    if mode == "rn":
        return rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    if mode == "rna":
        return rest >= Fraction(1, 2)
    return negative == (mode == "rm")


def encode(x: Number, fmt: Format, mode: str = "rn", finite: bool = False) -> int:
    """The bit pattern after one rounding; NaN is canonical, overflow stops at the largest if `finite`."""
    if x.is_nan:
        return fmt.nan
    sign = int(x.negative) << (fmt.bits - 1)
    over = fmt.largest if finite else (fmt.nan if fmt.infinity is None else fmt.infinity)
    if x.is_inf:
        return sign | over
    if x.magnitude == 0:
        return sign
    quantum = Fraction(2) ** (max(_floor_log2(x.magnitude), fmt.emin) - fmt.fraction)
    whole, rest = divmod(x.magnitude / quantum, 1)
    value = (int(whole) + _up(x.negative, int(whole), rest, mode)) * quantum
    if value > decode(fmt.largest, fmt).magnitude:
        towards_zero = mode == "rz" or (mode in ("rm", "rp") and x.negative != (mode == "rm"))
        return sign | (fmt.largest if finite or towards_zero else over)
    if value < Fraction(2) ** fmt.emin:
        return sign | int(value / Fraction(2) ** (fmt.emin - fmt.fraction))
    exponent = _floor_log2(value)
    fraction = int(value / Fraction(2) ** (exponent - fmt.fraction)) - (1 << fmt.fraction)
    return sign | (exponent - fmt.emin + 1) << fmt.fraction | fraction


NAN = Number(False, "nan")


def make(value: Fraction, zero_negative: bool) -> Number:
    return Number(value < 0 or (value == 0 and zero_negative), abs(value))


def add(a: Number, b: Number, mode: str = "rn") -> Number:
    if a.is_nan or b.is_nan or (a.is_inf and b.is_inf and a.negative != b.negative):
        return NAN
    if a.is_inf or b.is_inf:
        return a if a.is_inf else b
    zero = a.negative if a.negative == b.negative and a.magnitude == b.magnitude == 0 else mode == "rm"
    return make(a.signed + b.signed, zero)


def negate(a: Number) -> Number:
    return Number(not a.negative, a.magnitude)


def mul(a: Number, b: Number) -> Number:
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan or (a.is_inf and b.magnitude == 0) or (b.is_inf and a.magnitude == 0):
        return NAN
    if a.is_inf or b.is_inf:
        return Number(negative, "inf")
    return Number(negative, a.magnitude * b.magnitude)


def div(a: Number, b: Number) -> Number:
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan or (a.is_inf and b.is_inf) or (a.magnitude == 0 and b.magnitude == 0):
        return NAN
    if a.is_inf or b.magnitude == 0:
        return Number(negative, "inf")
    return Number(negative, Fraction(0) if b.is_inf else a.magnitude / b.magnitude)


def fma(a: Number, b: Number, c: Number, mode: str = "rn") -> Number:
    return add(mul(a, b), c, mode)


def sqrt(a: Number) -> Number:
    """To 200 bits, the last one sticky: enough for one correct rounding."""
    if a.is_nan or (a.negative and a.magnitude != 0):
        return NAN
    if a.is_inf or a.magnitude == 0:
        return a
    shift = 400 - 2 * (_floor_log2(a.magnitude) // 2)
    scaled = a.magnitude * Fraction(2) ** shift
    root = math.isqrt(int(scaled))
    exact = root * root == scaled
    return Number(False, (root + (0 if exact else Fraction(1, 2))) / Fraction(2) ** (shift // 2))


def flush(a: Number, fmt: Format) -> Number:
    """The number, with a subnormal one replaced by a zero of its sign."""
    tiny = not (a.is_nan or a.is_inf) and a.magnitude < Fraction(2) ** fmt.emin
    return Number(a.negative, Fraction(0)) if tiny else a


def flush_result(exact: Number, fmt: Format, mode: str) -> Number:
    """A result under .ftz: zero if subnormal once rounded to the digits of the format."""
    if exact.is_nan or exact.is_inf:
        return exact
    wide = Format(fmt.bits + 1, fmt.fraction, fmt.emin - 1, fmt.largest, fmt.infinity, fmt.nan)
    rounded = decode(encode(exact, wide, mode), wide) if exact.magnitude < 1 else exact
    return Number(exact.negative, Fraction(0)) if rounded.magnitude < Fraction(2) ** fmt.emin else exact


def saturate(code: int, fmt: Format) -> int:
    """A result clamped to [0, 1]; NaN and negative ones give +0."""
    x, one = decode(code, fmt), encode(Number(False, Fraction(1)), fmt)
    return 0 if x.is_nan or x.negative else min(code, one)
