"""SIMD video instructions against Python integers."""

from __future__ import annotations

import itertools
import operator

import pytest
from scalar_eval import every_word, run
from test_scalar_int import clamp, parts, sources

OPERATIONS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "avrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
    "absdiff": lambda a, b: abs(a - b), "min": min, "max": max,
}  # fmt: skip
COMPARISONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def video(operation, bits: int, signs: str, end: str):
    """By parts of a and b: packed, saturated to their width by .sat, or all of them added to c."""

    def apply(a, b, c):
        pairs = zip(parts(a, signs[1], bits, 32 // bits), parts(b, signs[2], bits, 32 // bits), strict=True)
        found = [int(operation(x, y)) for x, y in pairs]
        found = [clamp(x, f"{signs[0]}{bits}") for x in found] if end == ".sat" else found
        if end == ".add":
            return c + sum(found)
        return sum((x % (1 << bits)) << bits * i for i, x in enumerate(found))

    return apply


ORACLE = {
    **{
        f"v{name}{n}.{d}32.{x}32.{y}32{end}": video(meaning, 32 // n, d + x + y, end)
        for (name, meaning), d, x, y, end, n in itertools.product(
            OPERATIONS.items(), "us", "us", "us", ("", ".sat", ".add"), (2, 4)
        )
    },
    **{
        f"vset{n}.u32.s32.{name}{end}": video(meaning, 32 // n, "uus", end)
        for (name, meaning), n, end in itertools.product(COMPARISONS.items(), (2, 4), ("", ".add"))
    },
}


@pytest.mark.parametrize("name", every_word(ORACLE))
def test_against_python(name):
    columns = sources(("u32",) * 3)
    got = run(name, *columns).tolist()
    assert got == [ORACLE[name](*row) & 0xFFFF_FFFF for row in zip(*columns, strict=True)]
