"""A model of how a chip adds: products and C are aligned and truncated, added as integers, and rounded.

All terms take the largest exponent among the products and C; each significand keeps `bits` bits below the
point of that exponent (lower bits are dropped, towards zero), and the sum of these integers is rounded to D:
for f32 towards zero, to 23 or 13 bits, for f16 to nearest even. A long K is added in `step`s, each sum being
the next C. f64 is a chain of fused multiply-adds. Nothing of ptxsim is used here.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numba import njit

from research.arithmetic.forms import BITS, FP8, Form
from research.arithmetic.vectors import BIAS, EXPONENT, MANTISSA

FINITE, INFINITE, NAN = 0, 1, 2
F32, F32_SHORT, F16 = 0, 1, 2  # how D is rounded


@dataclass(frozen=True)
class Adder:
    """The parameters in which adders differ."""

    bits: int  # kept below the point of the largest exponent
    step: int  # elements of K that are added at once
    rounding: int
    pairs: bool = False  # 8-bit elements: the lower two of every four first, then the upper two
    after: bool = False  # C is not one of the terms: it is added to the sum, rounded to nearest


def adder_of(form: Form) -> Adder | None:
    """The adder that the H200 was found to have; None for f64."""
    if form.d == "f64":
        return None
    rounding = F16 if form.d == "f16" else F32
    if form.a not in FP8:
        return Adder(25, form.k, rounding)
    if form.unit == "mma":  # two products of f16, in which 8-bit elements are exact
        return Adder(25, form.k // 2, rounding, pairs=True, after=True)
    return Adder(13, form.k, rounding or F32_SHORT)


def split(codes: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(signed significand with MANTISSA bits below its point, exponent, class) of bit patterns."""
    width = MANTISSA[kind]
    codes = codes.astype(np.int64)
    field, rest = codes >> width & ((1 << EXPONENT[kind]) - 1), codes & ((1 << width) - 1)
    top = field == (1 << EXPONENT[kind]) - 1
    if kind == "e4m3":
        kinds = np.where(top & (rest == 7), NAN, FINITE)
    else:
        fraction = rest >> 13 << 13 if kind == "tf32" else rest
        kinds = np.where(top, np.where(fraction != 0, NAN, INFINITE), FINITE)
    if kind == "tf32":  # the lower 13 bits are ignored
        rest, width = rest >> 13, 10
    significand = rest | np.where(field > 0, 1 << width, 0)
    sign = np.where(codes >> (BITS[kind] - 1) & 1, -1, 1)
    return sign * significand, (np.maximum(field, 1) - BIAS[kind]).astype(np.int64), kinds.astype(np.int8)


def normal(parts: tuple) -> tuple:
    """e4m3 as the f16 that the chip converts it to, in which its subnormal numbers are normal."""
    significand, exponent, classes = parts
    for _ in range(MANTISSA["e4m3"]):
        small = (significand != 0) & (abs(significand) < 1 << MANTISSA["e4m3"])
        significand, exponent = np.where(small, 2 * significand, significand), exponent - small
    return significand, exponent, classes


def point(kind: str) -> int:
    return 10 if kind == "tf32" else MANTISSA[kind]


@njit(cache=True)
def _shifted(value, by):
    """value * 2**by, rounded towards zero."""
    size = abs(value)
    size = size << by if by >= 0 else (size >> -by if by > -63 else 0)
    return -size if value < 0 else size


@njit(cache=True)
def _rounded(total, exponent, bits, rounding):
    """(significand, exponent, class) of total * 2**(exponent - bits) in the type of D."""
    size = abs(total)
    if size == 0:
        return 0, 0, 0
    length = 0
    while size >> length:
        length += 1
    width, least, most = (10, -14, 15) if rounding == 2 else ((13 if rounding == 1 else 23), -126, 127)
    found = max(exponent - bits + length - 1, least)  # exponent of the result
    drop = found - width - (exponent - bits)
    if drop <= 0:
        kept = size << -drop
    elif rounding == 2 and drop < 63:
        kept, rest, half = size >> drop, size & ((1 << drop) - 1), 1 << (drop - 1)
        if rest > half or (rest == half and kept & 1):
            kept += 1
        if kept >> (width + 1):
            kept >>= 1
            found += 1
    else:
        kept = size >> drop if drop < 63 else 0
    if rounding == 1:
        kept <<= 10
    return (-kept if total < 0 else kept), found, 1 if found > most else 0


@njit(cache=True)
def _code(value, exponent, kind, rounding):
    """The bit pattern of a result."""
    width, bias, top = (10, 15, 31) if rounding == 2 else (23, 127, 255)
    sign = 1 << (15 if rounding == 2 else 31)
    if kind == 2:
        return sign - 1
    if kind == 1:
        return top << width | (sign if value < 0 else 0)
    size = abs(value)
    field = exponent + bias if size >> width else 0
    return (size & ((1 << width) - 1)) | field << width | (sign if value < 0 else 0)


@njit(cache=True)
def _term(x, kind_x, y, kind_y, state, sign):
    """Class and sign of the running sum after a product with an infinity or NaN."""
    nothing = (kind_x == 1 and kind_y == 0 and y == 0) or (kind_y == 1 and kind_x == 0 and x == 0)
    if kind_x == 2 or kind_y == 2 or nothing or state == 2:
        return 2, 0
    own = -1 if (x < 0) != (y < 0) else 1
    return (2, 0) if state == 1 and sign != own else (1, own)


@njit(cache=True)
def _highest(a, b, rows, places, value, exponent, kind):
    """(exponent of the largest term, class and sign of the sum if it is not finite)."""
    (sa, ea, ka), (sb, eb, kb), (t, i, j) = a, b, rows
    top = exponent if value else -126
    sign = -1 if value < 0 else 1
    for l in places:
        x, y = sa[t, i, l], sb[t, j, l]
        if ka[t, i, l] or kb[t, j, l]:
            kind, sign = _term(x, ka[t, i, l], y, kb[t, j, l], kind, sign)
        elif x and y:
            top = max(top, ea[t, i, l] + eb[t, j, l])
    return top, kind, sign


@njit(cache=True)
def _one(a, b, term, rows, order, options):
    """The bit pattern of one element of D; term: (significand, exponent, class) of C."""
    (sa, ea, _), (sb, eb, _), (t, i, j) = a, b, rows
    bits, step, rounding, point_ab, width, _ = options
    value, exponent, kind = term
    for start in range(0, len(order), step):
        places = order[start : start + step]
        top, kind, sign = _highest(a, b, rows, places, value, exponent, kind)
        if kind:
            value = sign
            continue
        total = _shifted(value, bits - width + exponent - top)
        for l in places:
            shift = bits - point_ab + ea[t, i, l] + eb[t, j, l] - top
            total += _shifted(sa[t, i, l] * sb[t, j, l], shift)
        value, exponent, kind = _rounded(total, top, bits, rounding)
        if kind:
            value = -1 if total < 0 else 1
        width = 10 if rounding == 2 else 23
    return _code(value, exponent, kind, rounding)


@njit(cache=True)
def fused(a, b, c, order, options, out):
    """Fills out (tiles, m, n); a, b, c: (significand, exponent, class) arrays; order: places along K.

    options: bits, step, rounding, points of a product and of C, whether C is added at the end.
    """
    for t in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                term = (c[0][t, i, j], c[1][t, i, j], np.int64(c[2][t, i, j]))
                if options[5]:
                    term = (np.int64(0), np.int64(0), np.int64(0))
                out[t, i, j] = _one(a, b, term, (t, i, j), order, options)


_fma = ctypes.CDLL("libm.so.6").fma
_fma.argtypes, _fma.restype = [ctypes.c_double] * 3, ctypes.c_double


@njit
def _chain(a, b, c, out):
    for t in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                total = c[t, i, j]
                for l in range(a.shape[2]):
                    total = _fma(a[t, i, l], b[t, j, l], total)
                out[t, i, j] = total


def doubles(codes: np.ndarray, kind: str) -> np.ndarray:
    """float64 values of bit patterns."""
    if kind == "f64":
        return codes.view(np.float64)
    significand, exponent, classes = split(codes, kind)
    value = np.ldexp(significand.astype(float), exponent - point(kind))
    value = np.where(classes == INFINITE, np.where(significand < 0, -np.inf, np.inf), value)
    return np.where(classes == NAN, np.nan, value)


def patterns(values: np.ndarray, kind: str) -> np.ndarray:
    """float64 rounded to nearest: f16, f32 or f64; every NaN is the canonical one."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = values.astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind])
    codes = found.view(f"u{found.itemsize}").astype(np.uint64 if kind == "f64" else np.uint32)
    codes[np.isnan(found)] = {"f16": 0x7FFF, "f32": 0x7FFF_FFFF, "f64": 0xFFF8 << 48}[kind]
    return codes


def product(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray, adder: Adder | None) -> np.ndarray:
    """Bit patterns of D according to the model."""
    if adder is None:
        found = np.empty(c.shape)
        _chain(a.view(np.float64), b.view(np.float64), c.view(np.float64), found)
        return patterns(found, "f64")
    order = np.arange(form.k)
    if adder.pairs:
        order = np.concatenate([order[order % 4 < 2], order[order % 4 > 1]])
    out = np.empty(c.shape, np.int64)
    options = (
        adder.bits,
        adder.step,
        adder.rounding,
        point(form.a) + point(form.b),
        point(form.d),
        adder.after,
    )
    factors = [split(x, kind) for x, kind in ((a, form.a), (b, form.b))]
    if adder.pairs:
        factors = [
            normal(p) if kind == "e4m3" else p for p, kind in zip(factors, (form.a, form.b), strict=True)
        ]
    fused(*factors, split(c, form.d), order, options, out)
    if not adder.after:
        return out.astype(np.uint32)
    with np.errstate(invalid="ignore"):
        return patterns(doubles(out.astype(np.uint32), form.d) + doubles(c, form.d), form.d)
