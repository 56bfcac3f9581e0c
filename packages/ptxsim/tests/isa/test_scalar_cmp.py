"""set, setp, selp, slct, predicate logic, lop3 with a predicate, and the carry chain, against Python."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest
import rounding as ref
from scalar_eval import every_word, run
from test_scalar_float import patterns
from test_scalar_int import edges, value, width

ORDER = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt}
ORDER["ge"] = operator.ge
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def number(x: ref.Number) -> float:
    """Comparable as a Python float: exact for the formats used here."""
    return (
        float("nan")
        if x.is_nan
        else float("inf") * (-1 if x.negative else 1)
        if x.is_inf
        else float(x.signed)
    )


def test_of(cmp: str, a, b) -> bool:
    """A comparison operator of PTX ISA 9.3.1; NaN only occurs with floats."""
    unordered = a != a or b != b
    if cmp in ("num", "nan"):
        return unordered == (cmp == "nan")
    if cmp.endswith("u"):
        return unordered or ORDER[cmp[:-1]](a, b)
    return not unordered and ORDER[UNSIGNED.get(cmp, cmp)](a, b)


test_of.__test__ = False
BOOLEAN = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
INTEGER = [f"{c}.{t}" for t in ("u32", "s32", "u64", "s64") for c in ("eq", "ne", "lt", "le", "gt", "ge")]
INTEGER += ["lo.u16", "hs.u32", "hi.u64", "ls.u32", "eq.b16", "ne.b64", "lt.s16"]


@pytest.mark.parametrize("name", every_word(INTEGER))
def test_setp_integers(name):
    cmp, kind = name.split(".")
    a, b = zip(*itertools.product(edges(kind), repeat=2), strict=True)
    read = kind.replace("b", "u")
    expected = [int(test_of(cmp, value(x, read), value(y, read))) for x, y in zip(a, b, strict=True)]
    assert run(f"setp.{cmp}.{kind}", a, b).tolist() == expected


FLOAT = [
    f"{c}.{t}" for t in ("f32", "f16") for c in ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu")
]
FLOAT += ["leu.f32", "gtu.f16", "geu.f32", "num.f32", "nan.f32", "lt.f64", "neu.f64", "nan.bf16", "geu.bf16"]


@pytest.mark.parametrize("name", every_word(FLOAT))
def test_setp_floats(name):
    cmp, kind = name.split(".")
    a, b = patterns(kind, 2, 600)
    b[:100] = a[:100]
    fmt = ref.FORMATS[kind]
    expected = [
        int(test_of(cmp, number(ref.decode(x, fmt)), number(ref.decode(y, fmt))))
        for x, y in zip(a, b, strict=True)
    ]
    assert run(f"setp.{cmp}.{kind}", a, b).tolist() == expected


def test_ftz_makes_subnormal_numbers_equal_zero():
    assert run("setp.eq.ftz.f32", [1, 0x807FFFFF, 0x00800000], [0, 0, 0]).tolist() == [1, 1, 0]
    assert run("setp.gt.f32", [1], [0]).tolist() == [1]
    assert run("setp.ne.ftz.f16", [1, 0x400], [0, 0]).tolist() == [0, 1]


@pytest.mark.parametrize("boolean", BOOLEAN)
def test_setp_combined_with_a_predicate(boolean):
    """p = test op c; q = (not test) op c (PTX ISA 9.7.6, setp)."""
    a, b, c = zip(*itertools.product((1, 2), (1, 2), (0, 1)), strict=True)
    tests = [x < y for x, y in zip(a, b, strict=True)]
    p, q = run(f"setp.lt.{boolean}.s32", a, b, c, pair=True)
    assert p.tolist() == [int(BOOLEAN[boolean](t, bool(z))) for t, z in zip(tests, c, strict=True)]
    assert q.tolist() == [int(BOOLEAN[boolean](not t, bool(z))) for t, z in zip(tests, c, strict=True)]
    assert run(f"setp.lt.{boolean}.s32", a, b, c).tolist() == p.tolist()


def test_setp_with_two_results():
    p, q = run("setp.neu.f32", [0x7FC00000, 0x3F800000], [0x3F800000, 0x3F800000], pair=True)
    assert (p.tolist(), q.tolist()) == ([1, 0], [0, 1])


def test_setp_of_pairs_compares_each_half():
    p, q = run("setp.lt.f16x2", [0x3C00_4000, 0x7E00_3C00], [0x4000_3C00, 0x4000_4000], pair=True)
    assert (p.tolist(), q.tolist()) == ([0, 1], [1, 0])


@pytest.mark.parametrize(
    "name, true",
    [
        *[("set.lt.u32.s32", 0xFFFFFFFF), ("set.lt.f32.s32", 0x3F800000), ("set.lt.f16.s32", 0x3C00)],
        *[("set.lt.s32.s32", 0xFFFFFFFF), ("set.lt.bf16.s32", 0x3F80)],
    ],
)
def test_set_writes_one_or_all_bits(name, true):
    assert run(name, [2**32 - 1, 0, 1], [0, 2**32 - 1, 1]).tolist() == [true, 0, 0]


def test_set_of_pairs():
    a, b = [0x3C00_4000], [0x4000_3C00]
    assert run("set.gt.u32.f16x2", a, b).tolist() == [0x0000_FFFF]
    assert run("set.lt.f16x2.f16x2", a, b).tolist() == [0x3C00_0000]
    assert run("set.lt.or.u32.f16x2", a, b, [1]).tolist() == [0xFFFF_FFFF]


@pytest.mark.parametrize("kind", ["b16", "u32", "f32", "f64"])
def test_selp(kind):
    assert run(f"selp.{kind}", [3, 3], [5, 5], [1, 0]).tolist() == [3, 5]


def test_slct():
    assert run("slct.u32.s32", [3] * 3, [5] * 3, [0, 1, 2**32 - 1]).tolist() == [3, 3, 5]
    floats = [0x80000000, 0x3F800000, 0xBF800000, 0x7FC00000, 0x80000001]  # -0, 1, -1, NaN, -tiny
    assert run("slct.b64.f32", [3] * 5, [5] * 5, floats).tolist() == [3, 3, 5, 5, 5]
    assert run("slct.ftz.b64.f32", [3] * 5, [5] * 5, floats).tolist() == [3, 3, 5, 5, 3]


@pytest.mark.parametrize("name", BOOLEAN)
def test_predicate_logic(name):
    a, b = [0, 0, 1, 1], [0, 1, 0, 1]
    assert run(f"{name}.pred", a, b).tolist() == [BOOLEAN[name](x, y) for x, y in zip(a, b, strict=True)]


def test_predicate_not_and_mov():
    assert run("not.pred", [0, 1]).tolist() == [1, 0]
    assert run("mov.pred", [0, 1]).tolist() == [0, 1]


@pytest.mark.parametrize("name", ["and", "or"])
def test_lop3_with_a_predicate(name):
    d, p = run(f"lop3.{name}.b32", [6, 6, 1], [3, 3, 2], [0, 0, 0], [0xC0] * 3, [0, 1, 1], pair=True)
    assert d.tolist() == [2, 2, 0]
    assert p.tolist() == [BOOLEAN[name](x, y) for x, y in zip([1, 1, 0], [0, 1, 1], strict=True)]


def parts(op: str, kind: str, a: int, b: int, c: int = 0) -> tuple[int, int]:
    """The two numbers that an extended-precision instruction adds or subtracts."""
    if not op.startswith("mad"):
        return a, b
    product = value(a, kind) * value(b, kind)
    return (product if ".lo" in op else product >> width(kind)) & ((1 << width(kind)) - 1), c


CHAINS = [(op, kind) for op in ("add", "sub") for kind in ("u32", "s64")]
CHAINS += [(op, kind) for op in ("mad.lo", "mad.hi") for kind in ("u32", "s32", "u64", "s64")]


@pytest.mark.parametrize("op, kind", every_word(CHAINS))
def test_carry(op, kind):
    """.cc writes the carry, or the complement of the borrow; the c forms use it (PTX ISA 9.7.2)."""
    w, count = width(kind), 3 if op.startswith("mad") else 2
    rows = list(itertools.product(edges(kind)[:8], repeat=count))
    columns = [list(column) for column in zip(*rows, strict=True)]
    name, _, half = op.partition(".")
    half = half and "." + half
    sign = -1 if name == "sub" else 1
    for carry_in, with_c in ((0, ""), (0, "c"), (1, "c")):
        exact = [x + sign * (y + carry_in) for x, y in (parts(op, kind, *row) for row in rows)]
        flag = carry_in ^ (name == "sub")
        value_, carry = run(f"{name}{with_c}{half}.cc.{kind}", *columns, carry=flag)
        assert value_.tolist() == [x & ((1 << w) - 1) for x in exact]
        assert carry.tolist() == [int(not 0 <= x < 1 << w) ^ (name == "sub") for x in exact]
        if with_c:
            assert run(f"{name}c{half}.{kind}", *columns, carry=flag).tolist() == value_.tolist()


def test_a_128_bit_sum_through_the_carry():
    rng = np.random.default_rng(8)
    a, b = (
        [int(x) << 64 | int(y) for x, y in rng.integers(0, 2**64, (200, 2), dtype=np.uint64)] for _ in "ab"
    )
    words = [[[x >> 64 * i & (2**64 - 1) for x in column] for i in (0, 1)] for column in (a, b)]
    low, carry = run("add.cc.u64", words[0][0], words[1][0])
    high = run("addc.u64", words[0][1], words[1][1], carry=carry)
    got = [int(x) << 64 | int(y) for x, y in zip(high, low, strict=True)]
    assert got == [(x + y) % 2**128 for x, y in zip(a, b, strict=True)]
