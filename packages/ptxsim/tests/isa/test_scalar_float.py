"""Float arithmetic of all widths against exact rationals rounded once, approximations against math."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
import rounding as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from scalar_eval import every_word, run

# Patterns worth trying: zeros, subnormal numbers, ones, halfway cases, borders of every range, NaNs
EDGES = {
    "f32": [0, 1, 2, 0x7FFFFF, 0x800000, 0x800001, 0x3F800000, 0x3F800001, 0x3F7FFFFF, 0x3F000000, 0x40400000]
    + [
        0x33800000,
        0x33800001,
        0x34000000,
        0x4B800000,
        0x4B800001,
        0x5F000000,
        0x20000000,
        0x1F800001,
        0x60AD78EC,
    ]
    + [0x7F7FFFFF, 0x7F000000, 0x73800000, 0x7F800000, 0x7FC00000, 0x7F800001],
    "f64": [
        0,
        1,
        0xFFFFFFFFFFFFF,
        0x10000000000000,
        0x3FF0000000000000,
        0x3FF0000000000001,
        0x3FEFFFFFFFFFFFFF,
    ]
    + [0x3CA0000000000000, 0x3CA0000000000001, 0x3CB0000000000000, 0x4008000000000000, 0x5FE0000000000001]
    + [0x1FE0000000000003, 0x2000000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FE0000000000000, 0x7C90000000000000]
    + [0x7FF0000000000000, 0x7FF8000000000000],
    "f16": [
        0,
        1,
        2,
        0x3FF,
        0x400,
        0x401,
        0x3C00,
        0x3C01,
        0x3BFF,
        0x3800,
        0x1000,
        0x1001,
        0x1400,
        0x6800,
        0x6801,
    ]
    + [0x7BFF, 0x7800, 0x4C00, 0x7C00, 0x7E00, 0x7C01, 0x7FFF],
    "bf16": [
        0,
        1,
        2,
        0x7F,
        0x80,
        0x81,
        0x3F80,
        0x3F81,
        0x3F7F,
        0x3F00,
        0x3B80,
        0x3B81,
        0x3C00,
        0x4380,
        0x4381,
    ]
    + [0x7F7F, 0x7F00, 0x1F81, 0x2000, 0x5F81, 0x7F80, 0x7FC0, 0x7F81, 0x7FFF],
}
MODES = ("rn", "rz", "rm", "rp")


def patterns(kind: str, count: int, rows: int, seed: int = 5) -> list[list[int]]:
    """`count` columns of raw patterns: edges of either sign, neighbours of each other, and random numbers."""
    fmt = ref.FORMATS[kind]
    rng = np.random.default_rng(seed)
    sign = 1 << (fmt.bits - 1)
    columns = []
    for _ in range(count):
        picked = rng.choice(len(EDGES[kind]), rows)
        edge = [EDGES[kind][i] | (sign if rng.random() < 0.5 else 0) for i in picked]
        middle = ref.encode(ref.Number(False, ref.Fraction(1)), fmt)
        spread = (1 << fmt.fraction) * min(30, middle >> fmt.fraction)
        near = [
            (middle + int(rng.integers(-spread, spread))) | (sign if rng.random() < 0.5 else 0) for _ in edge
        ]
        columns.append([e if rng.random() < 0.6 else n for e, n in zip(edge, near, strict=True)])
    return columns


def same(got: int, expected: int, kind: str) -> bool:
    """Equal bits; any NaN equals any other."""
    fmt = ref.FORMATS[kind]
    return got == expected or (ref.decode(got, fmt).is_nan and ref.decode(expected, fmt).is_nan)


def check(name: str, kind: str, meaning, count: int, rows: int = 600, ftz: bool = False, sat: bool = False):
    """Compares an operation on columns of one format with `meaning` of exact numbers, rounded once."""
    fmt = ref.FORMATS[kind]
    mode = next((m for m in MODES if f".{m}." in name), "rn")
    columns = patterns(kind, count, rows)
    got = run(name, *columns)
    for row, bits in enumerate(zip(*columns, strict=True)):
        numbers = [ref.decode(b, fmt) for b in bits]
        if ftz:
            numbers = [ref.flush(n, fmt) for n in numbers]
        exact = meaning(mode, *numbers)
        expected = ref.encode(ref.flush_result(exact, fmt, mode) if ftz else exact, fmt, mode)
        expected = ref.saturate(expected, fmt) if sat else expected
        assert same(int(got[row]), expected, kind), (
            f"{name} {[hex(b) for b in bits]}: {got[row]:#x}, not {expected:#x}"
        )


def plus(mode, a, b):
    return ref.add(a, b, mode)


def minus(mode, a, b):
    return ref.add(a, ref.negate(b), mode)


def times(mode, a, b):
    return ref.mul(a, b)


def fused(mode, a, b, c):
    return ref.fma(a, b, c, mode)


BASIC = {"add": (plus, 2), "sub": (minus, 2), "mul": (times, 2), "fma": (fused, 3)}
EVERY = [(op, mode, kind) for op in BASIC for mode in MODES for kind in ("f32", "f64")]


@pytest.mark.parametrize("op, mode, kind", every_word(EVERY))
def test_basic(op, mode, kind):
    meaning, count = BASIC[op]
    check(f"{op}.{mode}.{kind}", kind, meaning, count)


@pytest.mark.parametrize("name", ["div", "rcp", "sqrt"])
@pytest.mark.parametrize("mode", every_word(MODES))
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_quotients(name, mode, kind):
    one = ref.Number(False, ref.Fraction(1))
    meanings = {
        "div": (lambda m, a, b: ref.div(a, b), 2),
        "rcp": (lambda m, a: ref.div(one, a), 1),
        "sqrt": (lambda m, a: ref.sqrt(a), 1),
    }
    check(f"{name}.{mode}.{kind}", kind, *meanings[name], rows=400)


@pytest.mark.parametrize("name", ["add.ftz.f32", "mul.sat.f32", "fma.rz.ftz.sat.f32", "sub.rp.ftz.f32"])
def test_flush_and_saturate(name):
    meaning, count = BASIC[name.split(".")[0]]
    check(name, "f32", meaning, count, ftz=".ftz" in name, sat=".sat" in name)


@pytest.mark.parametrize("op", BASIC)
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_half(op, kind):
    meaning, count = BASIC[op]
    check(f"{op}.rn.{kind}", kind, meaning, count, rows=1500)


@pytest.mark.parametrize("name", ["add.ftz.f16", "mul.sat.f16", "fma.rn.ftz.sat.f16"])
def test_half_flush_and_saturate(name):
    meaning, count = BASIC[name.split(".")[0]]
    check(name, "f16", meaning, count, ftz=".ftz" in name, sat=".sat" in name)


def halves(word: int) -> tuple[int, int]:
    return word & 0xFFFF, word >> 16


@pytest.mark.parametrize(
    "name", ["add.f16x2", "mul.rn.bf16x2", "fma.rn.f16x2", "fma.rn.relu.bf16x2", "min.NaN.f16x2"]
)
def test_pairs_are_two_halves(name):
    """A packed operation is the plain one on the low and on the high half."""
    kind = name.split(".")[-1]
    count = 3 if name.startswith("fma") else 2
    low, high = (patterns(kind.removesuffix("x2"), count, 400, seed) for seed in (1, 2))
    words = [[x | y << 16 for x, y in zip(a, b, strict=True)] for a, b in zip(low, high, strict=True)]
    single = name.removesuffix("x2")
    both = [halves(int(word)) for word in run(name, *words)]
    assert both == list(zip(run(single, *low).tolist(), run(single, *high).tolist(), strict=True))


def test_f32x2_is_two_floats():
    low, high = (patterns("f32", 3, 400, seed) for seed in (1, 2))
    words = [[x | y << 32 for x, y in zip(a, b, strict=True)] for a, b in zip(low, high, strict=True)]
    for op in ("fma.rn.ftz", "fma.rp"):
        got = run(f"{op}.f32x2", *words)
        for columns, part in ((low, got & np.uint64(0xFFFFFFFF)), (high, got >> np.uint64(32))):
            assert all(
                same(int(x), int(y), "f32") for x, y in zip(part, run(f"{op}.f32", *columns), strict=True)
            )


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_half_relu(kind):
    columns = patterns(kind, 3, 600)
    plain, relu = run(f"fma.rn.{kind}", *columns), run(f"fma.rn.relu.{kind}", *columns)
    for x, y in zip(plain.tolist(), relu.tolist(), strict=True):
        number = ref.decode(x, ref.FORMATS[kind])
        assert y == (0x7FFF if number.is_nan else 0 if number.negative else x)


def extreme(minimum: bool, nan_wins: bool, xorsign: bool, a: ref.Number, b: ref.Number) -> ref.Number:
    """PTX ISA 9.7.3, min and max: a NaN loses unless .NaN, -0 is below +0."""
    sign = a.negative != b.negative
    if xorsign:
        a, b = ref.Number(False, a.magnitude), ref.Number(False, b.magnitude)
    if a.is_nan or b.is_nan:
        picked = ref.NAN if nan_wins or (a.is_nan and b.is_nan) else (b if a.is_nan else a)
    else:
        order = [float("inf") if x.is_inf else x.magnitude for x in (a, b)]
        rank = [(-m if x.negative else m, not x.negative) for m, x in zip(order, (a, b), strict=True)]
        picked = a if (rank[0] < rank[1]) == minimum else b
    return picked if picked.is_nan or not xorsign else ref.Number(sign, picked.magnitude)


MINMAX = [
    "min.f32",
    "max.f32",
    "min.NaN.f32",
    "max.NaN.xorsign.abs.f32",
    "min.xorsign.abs.f32",
    "min.f64",
    "max.f64",
]
MINMAX += [
    "min.f16",
    "max.NaN.f16",
    "max.xorsign.abs.f16",
    "min.NaN.bf16",
    "max.bf16",
    "min.NaN.xorsign.abs.bf16",
]


@pytest.mark.parametrize("name", every_word(MINMAX))
def test_min_max(name):
    flags = (name.startswith("min"), ".NaN" in name, ".xorsign" in name)
    check(name, name.split(".")[-1], lambda mode, a, b: extreme(*flags, a, b), 2, rows=1500)


@pytest.mark.parametrize("name", ["min.f32", "max.ftz.NaN.abs.f32"])
def test_min_max_of_three(name):
    columns = patterns("f32", 3, 600)
    if ".abs" in name:
        magnitudes = [[x & 0x7FFFFFFF for x in column] for column in columns]
    else:
        magnitudes = columns
    pair = name.replace(".abs", "")
    two = run(pair, run(pair, *magnitudes[:2]), magnitudes[2])
    assert run(name, *columns).tolist() == two.tolist()


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
def test_sign_operations(kind):
    """Sign operations on numbers; NaNs are tested in test_chip_fuzz.py."""
    (column,), sign = patterns(kind, 1, 300), 1 << (ref.FORMATS[kind].bits - 1)
    column = [x for x in column if not ref.decode(x, ref.FORMATS[kind]).is_nan]
    assert run(f"neg.{kind}", column).tolist() == [x ^ sign for x in column]
    assert run(f"abs.{kind}", column).tolist() == [x & ~sign for x in column]
    if kind.startswith("f") and kind != "f16":
        other = patterns(kind, 1, 300, seed=9)[0][: len(column)]
        expected = [b & ~sign | a & sign for a, b in zip(column, other, strict=True)]
        assert run(f"copysign.{kind}", column, other).tolist() == expected


CLASSES = {
    "finite": lambda x, f: not (x.is_nan or x.is_inf),
    "infinite": lambda x, f: x.is_inf,
    "number": lambda x, f: not x.is_nan,
    "notanumber": lambda x, f: x.is_nan,
    "normal": lambda x, f: not (x.is_nan or x.is_inf) and not 0 < x.magnitude < ref.Fraction(2) ** f.emin,
    "subnormal": lambda x, f: not (x.is_nan or x.is_inf) and 0 < x.magnitude < ref.Fraction(2) ** f.emin,
}


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_testp(kind):
    (column,), fmt = patterns(kind, 1, 300), ref.FORMATS[kind]
    for name, meaning in CLASSES.items():
        expected = [int(meaning(ref.decode(x, fmt), fmt)) for x in column]
        assert run(f"testp.{name}.{kind}", column).tolist() == expected


def as_float(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def as_bits(x: float) -> int:
    return struct.unpack("<I", struct.pack("<f", x))[0]


FUNCTIONS = {
    "sin.approx.f32": (math.sin, -3.0, 3.0),
    "cos.approx.f32": (math.cos, -3.0, 3.0),
    "lg2.approx.f32": (math.log2, 1e-30, 1e30),
    "ex2.approx.ftz.f32": (lambda x: 2.0**x, -100.0, 100.0),
    "tanh.approx.f32": (math.tanh, -4.0, 4.0),
    "rsqrt.approx.ftz.f32": (lambda x: x**-0.5, 1e-30, 1e30),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    """The host's libm in double precision, rounded once: at most one unit in the last place off."""
    function, low, high = FUNCTIONS[name]
    column = [as_bits(x) for x in np.random.default_rng(2).uniform(low, high, 300).tolist()]
    for bits, got in zip(column, run(name, column).tolist(), strict=True):
        assert abs(got - as_bits(function(as_float(bits)))) <= 1


LIMITS = [
    *(
        ("ex2.approx.f32", 0xFF800000, 0),
        ("ex2.approx.f32", 0x7F800000, 0x7F800000),
        ("ex2.approx.f32", 0, 0x3F800000),
    ),
    *(("lg2.approx.f32", 0, 0xFF800000), ("lg2.approx.f32", 0x80000000, 0xFF800000)),
    *(("lg2.approx.ftz.f32", 1, 0xFF800000), ("ex2.approx.f32", 0xC3150000, 1)),
    *(("rsqrt.approx.f32", 0, 0x7F800000), ("rsqrt.approx.f32", 0x80000000, 0xFF800000)),
    *(
        ("rsqrt.approx.f32", 0x7F800000, 0),
        ("rcp.approx.ftz.f32", 1, 0x7F800000),
        ("tanh.approx.f32", 0x7F800000, 0x3F800000),
    ),
    *(
        ("rcp.approx.ftz.f64", 0x4000000000000000, 0x3FE0000000000000),
        ("ex2.approx.f16", 0xFC00, 0),
        ("tanh.approx.bf16", 0x7F80, 0x3F80),
    ),
]


@pytest.mark.parametrize("name, bits, expected", LIMITS)
def test_limits(name, bits, expected):
    assert run(name, [bits]).tolist() == [expected]


@pytest.mark.parametrize("name", ["lg2.approx.f32", "rsqrt.approx.f32", "sqrt.approx.f32", "sin.approx.f32"])
def test_outside_the_domain_is_nan(name):
    bits = 0x7F800000 if name.startswith("sin") else 0xBF800000
    assert ref.decode(int(run(name, [bits])[0]), ref.F32).is_nan


def test_approximate_division_by_huge_numbers_is_zero():
    a, b = [0x3F800000, 0xBF800000, 0x7F800000, 0x40400000], [0x7E800001, 0x7F7FFFFF, 0x7F000000, 0x7E800000]
    got = run("div.approx.f32", a, b).tolist()
    assert got[:2] == [0, 0x80000000] and ref.decode(got[2], ref.F32).is_nan and got[3] == 0x01400000
    assert run("div.full.f32", a[:1], b[1:2]).tolist() == [0x00200000]


@pytest.mark.parametrize("op, count", [("add", 2), ("sub", 2), ("fma", 3)])
def test_mixed_precision(op, count):
    """A half-precision operand of a float32 operation counts as its exact value."""
    halves_, singles = patterns("f16", count - 1, 400), patterns("f32", 1, 400)
    got = run(f"{op}.rz.f32.f16", *halves_, *singles)
    for row, bits in enumerate(zip(*halves_, *singles, strict=True)):
        numbers = [ref.decode(b, ref.F16) for b in bits[:-1]] + [ref.decode(bits[-1], ref.F32)]
        expected = ref.encode(BASIC[op][0]("rz", *numbers), ref.F32, "rz")
        assert same(int(got[row]), expected, "f32")


words = st.integers(0, 2**32 - 1)


@settings(max_examples=300)
@given(words, words, words)
def test_any_fma(a, b, c):
    for mode in ("rn", "rm"):
        exact = ref.fma(*(ref.decode(x, ref.F32) for x in (a, b, c)), mode)
        assert same(int(run(f"fma.{mode}.f32", [a], [b], [c])[0]), ref.encode(exact, ref.F32, mode), "f32")
