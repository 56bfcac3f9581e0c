"""Random matrices as bit patterns, from a seed: eight kinds of them, each an eighth of the tiles."""

from __future__ import annotations

import numpy as np

from research.arithmetic.forms import BITS, Form

EXPONENT = {"f16": 5, "bf16": 8, "tf32": 8, "f32": 8, "e4m3": 4, "e5m2": 5, "f64": 11}
MANTISSA = {kind: BITS[kind] - 1 - bits for kind, bits in EXPONENT.items()}
BIAS = {kind: (1 << bits - 1) - 1 for kind, bits in EXPONENT.items()}
# exponent fields: (low, high) of A and B around the bias or from one end, and of C around a product
MODES = {
    "alike": ("bias", -1, 1, -3, 5),
    "spread": ("bias", -7, 7, -30, 30),
    "finite": ("all", 0, 0, None, None),
    "any bits": ("bits", 0, 0, None, None),
    "subnormal": ("low", 0, 2, -12, 12),
    "cancelling": ("bias", -1, 1, -26, -1),
    "special": ("bias", -1, 1, -3, 5),
    "huge": ("high", -3, 0, -12, 12),
}


def codes_of(rng: np.random.Generator, shape: tuple, kind: str, low: int, high: int) -> np.ndarray:
    """Bit patterns of random sign and mantissa, with exponent fields of low .. high."""
    word = np.uint64 if kind == "f64" else np.uint32
    bits, top = BITS[kind], (1 << EXPONENT[kind]) - 1
    field = rng.integers(max(low, 0), min(high, top) + 1, shape, word)
    rest = rng.integers(0, 1 << (bits - EXPONENT[kind]), shape, word)
    sign, mantissa = rest >> word(MANTISSA[kind]), rest & word((1 << MANTISSA[kind]) - 1)
    return sign << word(bits - 1) | field << word(MANTISSA[kind]) | mantissa


def _top(kind: str) -> int:
    """The highest exponent field of a finite number (e4m3 has no infinities; its top pattern is NaN)."""
    return (1 << EXPONENT[kind]) - (1 if kind == "e4m3" else 2)


def _range(kind: str, where: str, low: int, high: int) -> tuple[int, int]:
    start = {"bias": BIAS[kind], "low": 0, "high": _top(kind), "all": 0, "bits": 0}[where]
    if where in ("all", "bits"):
        return 0, _top(kind) if where == "all" else (1 << EXPONENT[kind]) - 1
    return max(0, start + low), min(_top(kind), start + high)


def _special(kind: str) -> list[int]:
    """Zero, the smallest number, the largest, infinity or NaN, NaN; each of both signs."""
    bits, mantissa = BITS[kind], MANTISSA[kind]
    infinity = ((1 << EXPONENT[kind]) - 1) << mantissa
    found = [0, 1, infinity - 1, infinity, infinity | 1 << (mantissa - 1)]
    if kind == "tf32":
        found[1] = 1 << 13
    if kind == "e4m3":
        found[2:] = [0x7E, 0x7F, 0x7F]
    return [code | sign << (bits - 1) for code in found for sign in (0, 1)]


def _sprinkle(rng: np.random.Generator, codes: np.ndarray, kind: str, share: float) -> None:
    where = rng.random(codes.shape) < share
    codes[where] = rng.choice(np.array(_special(kind), codes.dtype), int(where.sum()))


def _mode(rng: np.random.Generator, form: Form, tiles: int, mode: str) -> tuple:
    where, low, high, *around = MODES[mode]
    shapes = (tiles, form.m, form.k), (tiles, form.n, form.k), (tiles, form.m, form.n)
    ranges = [_range(kind, where, low, high) for kind in (form.a, form.b)]
    a, b = (codes_of(rng, s, kind, *r) for s, kind, r in zip(shapes, (form.a, form.b), ranges, strict=False))
    if around[0] is None:
        c = codes_of(rng, shapes[2], form.d, *_range(form.d, where, 0, 0))
    else:
        middle = sum(
            (r[0] + r[1]) // 2 - BIAS[kind] for r, kind in zip(ranges, (form.a, form.b), strict=True)
        )
        middle = min(max(middle + BIAS[form.d], 0), _top(form.d))
        ends = max(0, min(middle + around[0], _top(form.d))), min(_top(form.d), max(0, middle + around[1]))
        c = codes_of(rng, shapes[2], form.d, *ends)
    if mode == "cancelling":
        a[..., 1::2], b[..., 1::2] = a[..., 0::2], b[..., 0::2] ^ b.dtype.type(1 << (BITS[form.b] - 1))
        unit = 1 << 13 if form.a == "tf32" else 1
        a[..., 1::2] ^= (rng.random(a[..., 1::2].shape) < 0.1).astype(a.dtype) * a.dtype.type(unit)
    if mode == "special":
        _sprinkle(rng, a, form.a, 0.01)
        _sprinkle(rng, b, form.b, 0.01)
        _sprinkle(rng, c, form.d, 0.02)
    return a, b, c


def matrices(form: Form, tiles: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bit patterns of A (tiles, m, k), B (tiles, n, k) and C (tiles, m, n); for floats, an eighth of each
    mode.
    """
    rng = np.random.default_rng([seed, *form.name.encode()])
    if form.is_float:
        parts = [_mode(rng, form, tiles // len(MODES), mode) for mode in MODES]
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))
    a, b = (
        rng.integers(0, 1 << BITS[kind], (tiles, size, form.k), np.uint32)
        for kind, size in ((form.a, form.m), (form.b, form.n))
    )
    c = rng.integers(0, 1 << 32, (tiles, form.m, form.n), np.uint32)
    c[::2] = (rng.integers(-(1 << 20), 1 << 20, c[::2].shape)).astype(np.uint32)
    return a, b, c
