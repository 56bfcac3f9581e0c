"""mma.sync, ldmatrix, stmatrix, movmatrix."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from research.chip.case import Case, names, program, rows, vector

_TESTS = Path(__file__).resolve().parents[3] / "packages" / "ptxsim" / "tests"
sys.path[:0] = [str(_TESTS), str(_TESTS / "units")]

from test_mma import FORMS, bits_of, pack, parts, random_matrix  # noqa: E402

from ptxsim.isa.layouts.fragments import mma_a, mma_b, mma_d  # noqa: E402

FLOAT = {"f16": "float16", "f32": "float32", "f64": "float64"}
ROUNDING = {"f16": (2e-3, 1e-2), "f32": (1e-5, 1e-5), "f64": (1e-14, 1e-14)}  # rtol, atol of random sums


def cases() -> list[Case]:
    found = [exact(form) for form in FORMS]
    random_forms = [f for f in FORMS if f.split(".")[3] in FLOAT]
    found += [random_case(form) for form in random_forms]
    found += [special(form) for form in random_forms if "k16" in form or "tf32" in form]
    found += [overflow(sat) for sat in ("", ".satfinite")]
    found += [matrix_load(n, t) for n in (1, 2, 4) for t in ("", ".trans")]
    found += [matrix_store(n, t) for n in (1, 2, 4) for t in ("", ".trans")]
    return [*found, movmatrix()]


def arch_of(form: str) -> str:
    return "sm_89" if "e4m3" in form or "e5m2" in form else "sm_90" if "f64" in form else "sm_80"


def mma(name: str, form: str, a, b, c, compare="bits", rtol=0.0, atol=0.0) -> Case:
    """One mma.sync of A (m, k), B (k, n), C (m, n)."""
    m, n, k, td, ta, tb, tc = parts(form)
    kind, width = ("b64", 64) if td == "f64" else ("b32", 32)
    sizes = ((m * n, td), (m * k, ta), (k * n, tb), (m * n, tc))
    counts = [max(1, size * bits_of(t) // 32 // width) for size, t in sizes]
    prefix, result = ("e", "y") if width == 64 else ("r", "o")
    inputs, outputs = names(prefix, sum(counts[1:])), names(result, counts[0])
    ra, rb = vector(inputs[: counts[1]]), vector(inputs[counts[1] : counts[1] + counts[2]])
    rc = vector(inputs[counts[1] + counts[2] :])
    body = rows(inputs, kind) + f"mma.sync.aligned.{form} {vector(outputs)}, {ra}, {rb}, {rc};\n"
    data = np.concatenate(
        [
            pack(a[mma_a(m, k, bits_of(ta))], ta),
            pack(b[mma_b(k, n, bits_of(tb))], tb),
            pack(c[mma_d(m, n)], tc),
        ]
    )
    out = np.zeros((counts[0], 32), data.dtype)
    arch = arch_of(form)
    text = program(body + rows(outputs, kind, load=False), target=arch)
    arrays = {"in": np.ascontiguousarray(data), "out": out}
    return Case(f"{name}.{form}", text, arrays, ("out",), arch=arch, compare=compare, rtol=rtol, atol=atol)


def exact(form: str) -> Case:
    m, n, k, td, ta, tb, tc = parts(form)
    rng = np.random.default_rng(len(form))
    a, b = random_matrix(rng, (m, k), ta), random_matrix(rng, (k, n), tb)
    c = random_matrix(rng, (m, n), "s8" if tc == "s32" else tc)
    return mma("mma.exact", form, a, b, c)


def random_case(form: str) -> Case:
    m, n, k, td, *_ = parts(form)
    rng = np.random.default_rng(7)
    a, b, c = (rng.standard_normal(s) for s in ((m, k), (k, n), (m, n)))
    return mma("mma.random", form, a, b, c, FLOAT[td], *ROUNDING[td])


def special(form: str) -> Case:
    """Infinities, NaNs, opposite infinities, subnormals and overflow, one row of A each."""
    m, n, k, td, ta, *_ = parts(form)
    a, b, c = np.ones((m, k)), np.ones((k, n)), np.zeros((m, n))
    with np.errstate(all="ignore"):
        a[0, 0], a[1, 1], a[2, :2], a[3, 0] = np.inf, np.nan, (np.inf, -np.inf), 2.0**-130
        a[4, :] = 2.0**15
        b[:, 1], c[5, 0], c[6, 0] = 2.0**9, np.inf, -np.inf
        if ta == "e4m3":
            a[np.isinf(a)] = np.nan
        return mma("mma.special", form, a, b, c, FLOAT[td], *ROUNDING[td])


def overflow(saturate: str) -> Case:
    form = f"m16n8k32.row.col{saturate}.s32.s8.s8.s32"
    c = np.full((16, 8), 2**31 - 1)
    c[8:] = -(2**31)
    a = np.full((16, 32), 127)
    a[8:] = -127
    return mma("mma.overflow", form, a, np.full((32, 8), 127), c)


FILL = (
    "shl.b32 %x0, %t, 4; add.u32 %x1, %sm, %x0; st.shared.v4.b32 [%x1], {%r0, %r1, %r2, %r3}; bar.sync 0;\n"
)
ROW = "sub.u32 %x2, 31, %t; shl.b32 %x2, %x2, 4; add.u32 %x2, %sm, %x2;\n"


def _words(seed: int, count: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, (count, 32), dtype=np.uint32)


def matrix_load(count: int, trans: str) -> Case:
    outputs = names("o", count)
    load = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {vector(outputs)}, [%x2];\n"
    body = rows(names("r", 4)) + FILL + ROW + load + rows(outputs, load=False)
    arrays = {"in": _words(1), "out": np.zeros((count, 32), np.uint32)}
    name = f"ldmatrix.x{count}{trans}"
    return Case(name, program(body, target="sm_80"), arrays, ("out",), shared=512, arch="sm_80")


def matrix_store(count: int, trans: str) -> Case:
    zero = "shl.b32 %x0, %t, 4; add.u32 %x1, %sm, %x0; mov.b32 %x3, 0;\n"
    zero += "st.shared.v4.b32 [%x1], {%x3, %x3, %x3, %x3}; bar.sync 0;\n"
    store = f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%x2], {vector(names('r', count))};\n"
    read = "bar.sync 0; ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%x1];\n"
    body = rows(names("r", 4)) + zero + ROW + store + read + rows(names("o", 4), load=False)
    arrays = {"in": _words(2), "out": np.zeros((4, 32), np.uint32)}
    return Case(f"stmatrix.x{count}{trans}", program(body), arrays, ("out",), shared=512)


def movmatrix() -> Case:
    body = rows(["%r0"]) + "movmatrix.sync.aligned.m8n8.trans.b16 %o0, %r0;\n" + rows(["%o0"], load=False)
    arrays = {"in": _words(3, 1), "out": np.zeros((1, 32), np.uint32)}
    return Case("movmatrix", program(body, target="sm_80"), arrays, ("out",), arch="sm_80")
