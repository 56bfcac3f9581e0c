"""Integer, extended-precision, logic and shift instructions against Python integers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scalar_eval import every_word, run

BITS = {"8": 8, "16": 16, "32": 32, "64": 64}


def width(kind: str) -> int:
    return int(kind.lstrip("usb"))


def value(raw: int, kind: str) -> int:
    """A raw pattern as the Python integer that it represents."""
    w = width(kind)
    raw &= (1 << w) - 1
    return raw - (1 << w) if kind[0] == "s" and raw >> (w - 1) else raw


def clamp(x: int, kind: str) -> int:
    w = width(kind)
    low, high = (0, 2**w - 1) if kind[0] == "u" else (-(2 ** (w - 1)), 2 ** (w - 1) - 1)
    return min(max(x, low), high)


def truncated(a: int, b: int) -> int:
    """C division: rounded towards zero."""
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def halves(a: int, signed: bool) -> list[int]:
    return [value(a >> shift, "s16" if signed else "u16") for shift in (0, 16)]


def pairs(op, signed):
    """An operation on both 16-bit halves."""

    def apply(a, b):
        low, high = (op(x, y) & 0xFFFF for x, y in zip(halves(a, signed), halves(b, signed), strict=True))
        return high << 16 | low

    return apply


def parts(raw: int, kind: str, bits: int, count: int) -> list[int]:
    return [value(raw >> (bits * i), f"{kind[0]}{bits}") for i in range(count)]


def dot(a: int, b: int, c: int, bits: int, count: int, kinds: tuple[str, str]) -> int:
    xs, ys = parts(a, kinds[0], bits, count), parts(b, kinds[1], 8, count)
    return c + sum(x * y for x, y in zip(xs, ys, strict=True))


def bfe(kind: str):
    """PTX ISA 9.7.1, bfe, bit by bit."""
    w = width(kind)

    def apply(a, b, c):
        raw, pos, length = a & ((1 << w) - 1), b & 0xFF, c & 0xFF
        sign = 0 if kind[0] == "u" or length == 0 else raw >> min(pos + length - 1, w - 1) & 1
        bits = [raw >> (pos + i) & 1 if i < length and pos + i < w else sign for i in range(w)]
        return sum(bit << i for i, bit in enumerate(bits))

    return apply


def bfi(w: int):
    def apply(a, b, c, d):
        pos, length = c & 0xFF, d & 0xFF
        for i in range(length):
            if pos + i < w:
                b = b & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
        return b

    return apply


def bfind(kind: str, shift: bool):
    def apply(a):
        x = ~a if a < 0 else a
        position = x.bit_length() - 1
        return width(kind) - 1 - position if shift and position >= 0 else position

    return apply


def fns(mask: int, base: int, offset: int) -> int:
    step, count = (1 if offset >= 0 else -1), abs(offset)
    found = [i for i in range(base, 32 if step > 0 else -1, step) if mask >> i & 1] if base < 32 else []
    if offset == 0:
        return base if found and found[0] == base else -1
    return found[count - 1] if len(found) >= count else -1


def szext(mode: str, signed: bool):
    def apply(a, b):
        n = b if mode == "clamp" else b & 31
        if n >= 32:
            return a
        low = a & ((1 << n) - 1)
        return low - (1 << n) if signed and n and low >> (n - 1) else low

    return apply


def bmsk(mode: str):
    def apply(a, b):
        a, b = (a, b) if mode == "clamp" else (a & 31, b & 31)
        return sum(1 << i for i in range(32) if a <= i < a + b)

    return apply


def prmt(a: int, b: int, c: int) -> int:
    """The generic permute: four selectors of three bits and a sign flag."""
    out = 0
    for i in range(4):
        byte = (b << 32 | a) >> 8 * (c >> 4 * i & 7) & 0xFF
        if c >> 4 * i & 8:
            byte = 0xFF if byte & 0x80 else 0
        out |= byte << 8 * i
    return out


def prmt_rule(rule):
    """A permute mode given as the source byte of each destination byte, lowest first."""
    return lambda a, b, c: sum(((b << 32 | a) >> 8 * rule(c & 3, i) & 0xFF) << 8 * i for i in range(4))


def lop3(a: int, b: int, c: int, table: int) -> int:
    return sum((table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32))


def funnel(direction: str, mode: str):
    def apply(a, b, c):
        n = min(c, 32) if mode == "clamp" else c & 31
        both = b << 32 | a
        return both << n >> 32 if direction == "l" else both >> n

    return apply


def reverse(w: int):
    return lambda a: int(f"{a:0{w}b}"[::-1], 2)


ORACLE = {  # spelling -> (types of the sources, type of the result, meaning)
    **{f"add.{t}": ((t, t), t, lambda a, b: a + b) for t in ("u16", "s32", "u64")},
    **{f"sub.{t}": ((t, t), t, lambda a, b: a - b) for t in ("s16", "u32", "s64")},
    "add.sat.s32": (("s32", "s32"), "s32", lambda a, b: clamp(a + b, "s32")),
    "sub.sat.s32": (("s32", "s32"), "s32", lambda a, b: clamp(a - b, "s32")),
    "add.u16x2": (("u32", "u32"), "u32", pairs(lambda a, b: a + b, False)),
    "add.s16x2": (("u32", "u32"), "u32", pairs(lambda a, b: a + b, True)),
    **{f"mul.lo.{t}": ((t, t), t, lambda a, b: a * b) for t in ("u16", "s32", "u64", "s64")},
    **{
        f"mul.hi.{t}": ((t, t), t, lambda a, b, t=t: a * b >> width(t))
        for t in ("u16", "s16", "u32", "s32", "u64", "s64")
    },
    **{
        f"mul.wide.{t}": ((t, t), f"{t[0]}{2 * width(t)}", lambda a, b: a * b)
        for t in ("u16", "s16", "u32", "s32")
    },
    **{f"mad.lo.{t}": ((t, t, t), t, lambda a, b, c: a * b + c) for t in ("s16", "u32", "s64")},
    **{
        f"mad.hi.{t}": ((t, t, t), t, lambda a, b, c, t=t: (a * b >> width(t)) + c)
        for t in ("u16", "s32", "u64", "s64")
    },
    "mad.hi.sat.s32": (("s32",) * 3, "s32", lambda a, b, c: clamp((a * b >> 32) + c, "s32")),
    **{
        f"mad.wide.{t}": ((t, t, f"{t[0]}{2 * width(t)}"), f"{t[0]}{2 * width(t)}", lambda a, b, c: a * b + c)
        for t in ("u16", "s16", "u32", "s32")
    },
    **{f"mul24.lo.{t}32": ((f"{t}24",) * 2, f"{t}32", lambda a, b: a * b) for t in "us"},
    **{f"mul24.hi.{t}32": ((f"{t}24",) * 2, f"{t}32", lambda a, b: a * b >> 16) for t in "us"},
    "mad24.lo.s32": (("s24", "s24", "s32"), "s32", lambda a, b, c: a * b + c),
    "mad24.hi.u32": (("u24", "u24", "u32"), "u32", lambda a, b, c: (a * b >> 16) + c),
    "mad24.hi.sat.s32": (
        ("s24", "s24", "s32"),
        "s32",
        lambda a, b, c: clamp(value(a * b >> 16, "s32") + c, "s32"),
    ),
    **{
        f"sad.{t}": ((t, t, t), t, lambda a, b, c: c + abs(a - b))
        for t in ("u16", "s16", "u32", "s32", "u64", "s64")
    },
    **{
        f"div.{t}": ((t, t), t, lambda a, b: truncated(a, b) if b else -1)
        for t in ("u16", "s32", "u32", "u64", "s64")
    },
    **{
        f"rem.{t}": ((t, t), t, lambda a, b: a - truncated(a, b) * b if b else -1)
        for t in ("s16", "s32", "u32", "u64", "s64")
    },
    **{f"abs.{t}": ((t,), t, abs) for t in ("s16", "s32", "s64")},
    **{f"neg.{t}": ((t,), t, lambda a: -a) for t in ("s16", "s32", "s64")},
    **{f"min.{t}": ((t, t), t, min) for t in ("u16", "s32", "u64", "s64")},
    **{f"max.{t}": ((t, t), t, max) for t in ("s16", "u32", "u64", "s64")},
    "min.relu.s32": (("s32", "s32"), "s32", lambda a, b: max(min(a, b), 0)),
    "max.relu.s32": (("s32", "s32"), "s32", lambda a, b: max(a, b, 0)),
    "min.u16x2": (("u32", "u32"), "u32", pairs(min, False)),
    "max.s16x2": (("u32", "u32"), "u32", pairs(max, True)),
    "min.relu.s16x2": (("u32", "u32"), "u32", pairs(lambda a, b: max(min(a, b), 0), True)),
    **{f"popc.b{w}": ((f"u{w}",), "u32", lambda a: bin(a).count("1")) for w in (32, 64)},
    **{f"clz.b{w}": ((f"u{w}",), "u32", lambda a, w=w: w - a.bit_length()) for w in (32, 64)},
    **{f"brev.b{w}": ((f"u{w}",), f"u{w}", reverse(w)) for w in (32, 64)},
    **{f"bfind.{t}": ((t,), "u32", bfind(t, False)) for t in ("u32", "s32", "u64", "s64")},
    **{f"bfind.shiftamt.{t}": ((t,), "u32", bfind(t, True)) for t in ("u32", "s64")},
    "fns.b32": (("u32", "small", "small"), "u32", fns),
    **{f"bfe.{t}": ((t, "small", "small"), t, bfe(t)) for t in ("u32", "s32", "u64", "s64")},
    **{f"bfi.b{w}": ((f"u{w}", f"u{w}", "small", "small"), f"u{w}", bfi(w)) for w in (32, 64)},
    **{
        f"szext.{mode}.{t}32": (("u32", "count"), f"{t}32", szext(mode, t == "s"))
        for mode in ("clamp", "wrap")
        for t in "us"
    },
    **{f"bmsk.{mode}.b32": (("count", "count"), "u32", bmsk(mode)) for mode in ("clamp", "wrap")},
    **{
        f"dp4a.{x}32.{y}32": (("u32",) * 3, "u32", lambda a, b, c, k=(x, y): dot(a, b, c, 8, 4, k))
        for x in "us"
        for y in "us"
    },
    **{
        f"dp2a.lo.{x}32.{y}32": (("u32",) * 3, "u32", lambda a, b, c, k=(x, y): dot(a, b, c, 16, 2, k))
        for x in "us"
        for y in "us"
    },
    "dp2a.hi.s32.u32": (("u32",) * 3, "u32", lambda a, b, c: dot(a, b >> 16, c, 16, 2, ("s", "u"))),
    **{f"and.b{w}": ((f"u{w}",) * 2, f"u{w}", lambda a, b: a & b) for w in (16, 64)},
    **{f"or.b{w}": ((f"u{w}",) * 2, f"u{w}", lambda a, b: a | b) for w in (32,)},
    **{f"xor.b{w}": ((f"u{w}",) * 2, f"u{w}", lambda a, b: a ^ b) for w in (32,)},
    **{f"not.b{w}": ((f"u{w}",), f"u{w}", lambda a: ~a) for w in (16, 64)},
    **{f"cnot.b{w}": ((f"u{w}",), f"u{w}", lambda a: int(a == 0)) for w in (16, 64)},
    "lop3.b32": (("u32", "u32", "u32", "table"), "u32", lop3),
    **{
        f"shf.{d}.{mode}.b32": (("u32", "u32", "count"), "u32", funnel(d, mode))
        for d in "lr"
        for mode in ("clamp", "wrap")
    },
    **{f"shl.b{w}": ((f"u{w}", "count"), f"u{w}", lambda a, n: a << min(n, 64)) for w in (16, 32, 64)},
    **{
        f"shr.{t}": ((t, "count"), t, lambda a, n: a >> min(n, 64))
        for t in ("u16", "s16", "u32", "s32", "u64", "s64")
    },
    "shr.b32": (("u32", "count"), "u32", lambda a, n: a >> min(n, 64)),
    "prmt.b32": (("u32",) * 3, "u32", prmt),
    "prmt.b32.f4e": (("u32",) * 3, "u32", prmt_rule(lambda s, i: s + i)),
    "prmt.b32.b4e": (("u32",) * 3, "u32", prmt_rule(lambda s, i: (s - i) % 8)),
    "prmt.b32.rc8": (("u32",) * 3, "u32", prmt_rule(lambda s, i: s)),
    "prmt.b32.ecl": (("u32",) * 3, "u32", prmt_rule(max)),
    "prmt.b32.ecr": (("u32",) * 3, "u32", prmt_rule(min)),
    "prmt.b32.rc16": (("u32",) * 3, "u32", prmt_rule(lambda s, i: 2 * (s & 1) + i % 2)),
}

SPECIAL = {
    "small": [
        0,
        1,
        2,
        5,
        15,
        16,
        31,
        32,
        33,
        63,
        64,
        65,
        127,
        200,
        255,
        256,
        257,
        2**32 - 1,
        2**32 - 3,
        2**31,
    ],
    "count": [0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 2**16, 2**31, 2**32 - 1],
    "table": [0, 0x80, 0xFE, 0x40, 0x1A, 0xE8, 0x96, 0xCA, 0xF8, 255],
}


def edges(kind: str) -> list[int]:
    """Raw patterns worth trying for a source."""
    if kind in SPECIAL:
        return SPECIAL[kind]
    w = 32 if kind.endswith("24") else width(kind)
    top = 1 << (w - 1)
    wanted = [
        0,
        1,
        2,
        3,
        top - 1,
        top,
        top + 1,
        2 * top - 1,
        2 * top - 2,
        0x7F80,
        0x8000,
        0x12345678,
        0xFEDCBA98_76543210,
    ]
    return [x & (2 * top - 1) for x in wanted]


def read(raw: int, kind: str) -> int:
    """A source as the oracle sees it; for fns small numbers are signed, elsewhere it does not matter."""
    return raw if kind in SPECIAL else value(raw, kind)


def sources(kinds: tuple[str, ...]) -> list[list[int]]:
    """Columns of patterns: products of the edge values, and random ones."""
    rng = np.random.default_rng(3)
    rows = list(itertools.product(*(edges(kind) for kind in kinds)))
    if len(rows) > 3000:
        rows = [rows[i] for i in rng.choice(len(rows), 3000, replace=False)]
    for _ in range(400):
        rows.append(
            tuple(
                int(rng.choice(SPECIAL[kind]))
                if kind in SPECIAL
                else int(rng.integers(0, 2**64, dtype=np.uint64))
                & ((1 << (32 if kind.endswith("24") else width(kind))) - 1)
                for kind in kinds
            )
        )
    return [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("name", every_word(ORACLE))
def test_against_python(name):
    kinds, result, meaning = ORACLE[name]
    columns = sources(kinds)
    got = run(name, *columns)
    for row in range(len(got)):
        raw = [column[row] for column in columns]
        args = [read(x, kind) for x, kind in zip(raw, kinds, strict=True)]
        if name == "fns.b32":
            args[2] = value(args[2], "s32")
        expected = meaning(*args) & ((1 << width(result)) - 1)
        assert int(got[row]) == expected, (
            f"{name} {[hex(x) for x in raw]}: {int(got[row]):#x}, not {expected:#x}"
        )


words = st.integers(0, 2**64 - 1)
ANY = [
    "mul.hi.s64",
    "mad.hi.sat.s32",
    "lop3.b32",
    "prmt.b32",
    "bfe.s64",
    "bfi.b32",
    "shf.l.clamp.b32",
    "div.s64",
]


@settings(max_examples=200)
@given(st.sampled_from(ANY), st.tuples(words, words, words, words))
def test_any_integers(name, patterns):
    kinds, result, meaning = ORACLE[name]
    sizes = {"small": 8, "count": 32, "table": 8}
    raw = [x & ((1 << (sizes.get(k) or width(k))) - 1) for x, k in zip(patterns, kinds, strict=False)]
    args = [x if k in sizes else value(x, k) for x, k in zip(raw, kinds, strict=True)]
    assert int(run(name, *([x] for x in raw))[0]) == meaning(*args) & ((1 << width(result)) - 1)
