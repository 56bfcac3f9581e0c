"""wmma.load, wmma.mma, wmma.store: results, and which register holds which element."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from research.chip.case import Case, names, program, rows, vector

_TESTS = Path(__file__).resolve().parents[3] / "packages" / "ptxsim" / "tests"
sys.path[:0] = [str(_TESTS), str(_TESTS / "units")]

from wmma_kernels import BITS, FORMS, SMALL, Matrix, counts, kernel, mma, random_matrices, sizes  # noqa: E402

FLOAT = {"f16": "float16", "f32": "float32", "f64": "float64"}
ROUNDING = {"f16": (2e-3, 1e-2), "f32": (1e-5, 1e-5), "f64": (1e-14, 1e-14)}  # rtol, atol of random sums


def cases() -> list[Case]:
    found = [product("exact", *form, seed) for form in FORMS for seed in range(2)]
    found += [product("random", *form, 7) for form in FORMS if form[2] in FLOAT]
    found += [special(*form) for form in FORMS if form[2] in FLOAT]
    found += [overflow(more) for more in ("", ".satfinite")]
    return [*found, odd_start(), *fragments()]


def launch(name: str, shape: str, matrices: dict[str, Matrix], more: str = "", **compare) -> Case:
    arrays = {which: one.array for which, one in matrices.items()}
    return Case(name, kernel(shape, matrices, mma(shape, matrices, more)), arrays, ("d",), **compare)


def tolerance(d: str) -> dict:
    return {"compare": FLOAT[d], "rtol": ROUNDING[d][0], "atol": ROUNDING[d][1]}


def product(what: str, shape: str, kind: str, d: str, c: str, seed: int) -> Case:
    rng = np.random.default_rng([seed, *map(ord, shape + kind + d + c)])
    matrices = random_matrices(rng, shape, kind, d, c, exact=what == "exact")
    name = f"wmma.{what}{seed}.{shape}.{kind}.{d}.{c}"
    return launch(name, shape, matrices, **(tolerance(d) if what == "random" else {}))


def special(shape: str, kind: str, d: str, c: str) -> Case:
    """Infinities, NaNs, opposite infinities, subnormals and overflow, one row of A each."""
    m, n, k = sizes(shape)
    a, b, sums = np.ones((m, k)), np.ones((k, n)), np.zeros((m, n))
    with np.errstate(all="ignore"):
        a[0, 0], a[1, 1], a[2, :2], a[3, 0] = np.inf, np.nan, (np.inf, -np.inf), 2.0**-130
        a[4, :] = 2.0**15
        b[:, 1], sums[5, 0], sums[6, 0] = 2.0**9, np.inf, -np.inf
        values = {"a": (a, kind), "b": (b, kind), "c": (sums, c), "d": (np.zeros((m, n)), d)}
        matrices = {which: Matrix(*one) for which, one in values.items()}
    return launch(f"wmma.special.{shape}.{kind}.{d}.{c}", shape, matrices, **tolerance(d))


def overflow(more: str) -> Case:
    a, b, c = (np.full((16, 16), v) for v in (127, 127, 2**31 - 1))
    a[8:], c[8:] = -127, -(2**31)
    kinds = {"a": (a, "s8"), "b": (b, "s8"), "c": (c, "s32"), "d": (0 * c, "s32")}
    matrices = {which: Matrix(*one) for which, one in kinds.items()}
    return launch(f"wmma.overflow{more}", "m16n16k16", matrices, more)


def odd_start() -> Case:
    """f16 matrices that start 16 bytes into a 32-byte fragment, as does every other row: a `review`."""
    rng, kinds = np.random.default_rng(3), {"a": "f16", "b": "f16", "c": "f32", "d": "f32"}
    values = {w: np.zeros((16, 16)) if w == "d" else rng.integers(-4, 5, (16, 16)) for w in kinds}
    spaces = {"a": ".global", "b": ".shared", "c": ".shared", "d": ".global"}
    matrices = {w: Matrix(values[w], kind, "row", spaces[w], 16, 24) for w, kind in kinds.items()}
    return launch("wmma.odd_start", "m16n16k16", matrices)


def fragments() -> list[Case]:
    found = {}
    for shape, kind, d, _ in FORMS:
        for which, one in (("a", kind), ("b", kind), ("c", d)):
            fixed = {"a": ("row",), "b": ("col",)}.get(which) if one in SMALL else None
            for side in fixed or ("row", "col"):
                case = fragment(which, shape, one, side, counts(shape, kind, d, d)[which])
                found[case.name] = case
    return list(found.values())


def fragment(which: str, shape: str, kind: str, side: str, count: int) -> Case:
    """The registers that a load fills, from random bits."""
    m, n, k = sizes(shape)
    size = {"a": m * k, "b": k * n, "c": m * n}[which] * BITS[kind] // 8
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    word = "b64" if kind == "f64" else "b32"
    registers = names("e" if kind == "f64" else "o", count)
    load = f"wmma.load.{which}.sync.aligned.{side}.{shape}.global.{kind} {vector(registers)}, [%in];\n"
    out = np.zeros((count, 32), np.uint64 if kind == "f64" else np.uint32)
    text = program(load + rows(registers, word, load=False))
    return Case(f"wmma.fragment.{which}.{shape}.{kind}.{side}", text, {"in": data, "out": out}, ("out",))
