"""mma.sync of every dense shape against numpy products of the matrices that the registers represent."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from warp_kernels import register_kernel, run_registers, vector

import ptxsim
from ptxsim.isa.layouts.fragments import mma_a, mma_b, mma_d

NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f64": np.float64, "f32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8, "u8": np.uint8, "s32": np.int32,
}  # fmt: skip
SMALL = {"s4": (-8, 8), "u4": (0, 16), "b1": (0, 2), "u8": (0, 256), "s8": (-128, 128)}
_ANY8 = [f"{a}.{b}" for a in ("s8", "u8") for b in ("s8", "u8")]
_ANY4 = [f"{a}.{b}" for a in ("s4", "u4") for b in ("s4", "u4")]
FORMS = [
    *(f"m16n8k{k}.row.col.{d}.f16.f16.{d}" for k in (8, 16) for d in ("f16", "f32")),
    *(f"m16n8k{k}.row.col.f32.bf16.bf16.f32" for k in (8, 16)),
    *(f"m16n8k{k}.row.col.f32.tf32.tf32.f32" for k in (4, 8)),
    *(f"{s}.row.col.f64.f64.f64.f64" for s in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
    *(f"m16n8k{k}.row.col.{d}.{a}.{b}.{d}" for k in (16, 32) for d in ("f16", "f32") for a in ("e4m3", "e5m2")
      for b in ("e4m3", "e5m2")),
    *(f"{s}.row.col{sat}.s32.{ab}.s32" for s in ("m8n8k16", "m16n8k16", "m16n8k32") for ab in _ANY8
      for sat in ("", ".satfinite")),
    *(f"{s}.row.col.s32.{ab}.s32" for s in ("m8n8k32", "m16n8k32", "m16n8k64") for ab in _ANY4),
    *(f"{s}.row.col.s32.b1.b1.s32.{op}.popc" for s in ("m8n8k128", "m16n8k128", "m16n8k256")
      for op in ("and", "xor")),
]  # fmt: skip

OPERANDS = ", ".join([vector("o", 0, 4), vector("r", 0, 4), vector("r", 4, 2), vector("r", 6, 4)])


def parts(form: str):
    words = form.split(".")
    m, n, k = map(int, words[0][1:].replace("n", " ").replace("k", " ").split())
    d, a, b, c = [w for w in words if w in {*NUMPY, *SMALL}]
    return m, n, k, d, a, b, c


def bits_of(kind: str) -> int:
    return {"s4": 4, "u4": 4, "b1": 1, "tf32": 32}.get(kind) or np.dtype(NUMPY[kind]).itemsize * 8


def random_matrix(rng, shape, kind: str) -> np.ndarray:
    """Values that the type holds exactly; float types get small integers, so that every sum is exact."""
    if kind in SMALL:
        return rng.integers(*SMALL[kind], shape)
    return rng.integers(-4, 5, shape).astype(float)


def pack(values: np.ndarray, kind: str) -> np.ndarray:
    """(lanes, elements) -> registers (elements * bits / 32, lanes) as uint32 (uint64 for f64)."""
    bits = bits_of(kind)
    if kind in NUMPY:
        raw = np.ascontiguousarray(values.astype(NUMPY[kind])).view(f"u{bits // 8}")
    else:
        raw = values & ((1 << bits) - 1)
    if bits == 64:
        return raw.T
    per = 32 // bits
    shifts = np.arange(per, dtype=np.uint64) * np.uint64(bits)
    fields = raw.astype(np.uint64).reshape(len(values), -1, per) << shifts
    return np.bitwise_or.reduce(fields, axis=2).astype(np.uint32).T


def unpack(registers: np.ndarray, kind: str) -> np.ndarray:
    return np.ascontiguousarray(registers.T).view(NUMPY[kind]).astype(float if kind[0] == "f" else np.int64)


def mma_kernel(form: str) -> tuple[str, list[int]]:
    m, n, k, d, a, b, c = parts(form)
    width = 64 if d == "f64" else 32
    sizes = ((m * n, d), (m * k, a), (k * n, b), (m * n, c))
    counts = [max(1, size * bits_of(t) // 32 // width) for size, t in sizes]
    ra, rb = vector("r", 0, counts[1]), vector("r", counts[1], counts[2])
    rc = vector("r", sum(counts[1:3]), counts[3])
    text = f"mma.sync.aligned.{form} {vector('o', 0, counts[0])}, {ra}, {rb}, {rc};"
    return register_kernel(text, sum(counts[1:]), counts[0], width), counts


def run_form(form: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """D (m, n) of one mma.sync of matrices A (m, k), B (k, n), C (m, n)."""
    m, n, k, td, ta, tb, tc = parts(form)
    ptx, counts = mma_kernel(form)
    data = [
        pack(a[mma_a(m, k, bits_of(ta))], ta),
        pack(b[mma_b(k, n, bits_of(tb))], tb),
        pack(c[mma_d(m, n)], tc),
    ]
    out = run_registers(ptx, np.concatenate(data), counts[0])
    d = np.zeros((m, n), float if td[0] == "f" else np.int64)
    d[mma_d(m, n)] = unpack(out, td)
    return d


@pytest.mark.parametrize("form", FORMS)
def test_exact_product(form):
    m, n, k, td, ta, tb, tc = parts(form)
    rng = np.random.default_rng(len(form))
    a, b = random_matrix(rng, (m, k), ta), random_matrix(rng, (k, n), tb)
    c = random_matrix(rng, (m, n), "s8" if tc == "s32" else tc)
    expected = a @ b + c
    if "xor" in form:
        expected = (a[:, :, None] != b[None]).sum(1) + c
    assert np.array_equal(run_form(form, a, b, c), expected)


def test_integer_overflow_wraps_or_saturates():
    a, b = np.full((16, 32), 127), np.full((32, 8), 127)
    c = np.full((16, 8), 2**31 - 1)
    form = "m16n8k32.row.col{}.s32.s8.s8.s32"
    assert (run_form(form.format(""), a, b, c) == 32 * 127 * 127 - 2**31 - 1).all()
    assert (run_form(form.format(".satfinite"), a, b, c) == 2**31 - 1).all()


def test_rounding_is_close_to_float64():
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(s).astype(np.float16).astype(float) for s in ((16, 16), (16, 8)))
    c = rng.standard_normal((16, 8)).astype(np.float32).astype(float)
    d = run_form("m16n8k16.row.col.f32.f16.f16.f32", a, b, c)
    assert np.array_equal(d, (a @ b + c).astype(np.float32).astype(float))


def test_tf32_ignores_the_low_13_bits():
    a = np.full((16, 8), np.float32(1.0))
    noisy = (a.astype(np.float32).view(np.uint32) | 0x1FFF).view(np.float32)
    b, c = np.ones((8, 8)), np.zeros((16, 8))
    assert (run_form("m16n8k8.row.col.f32.tf32.tf32.f32", noisy, b, c) == 8).all()


@pytest.mark.parametrize("form, message", [
    ("m8n8k4.row.col.f32.f16.f16.f16", "no such form"),
    ("m16n8k16.row.col.f32.f16.bf16.f32", "not a modelled form of mma"),
    ("m16n8k16.row.col.f32.f16.f16.f16", "no such form"),
    ("m16n8k32.row.col.f32.bf16.bf16.f32", "no such form"),
    ("m16n8k16.row.col.kind::mxf8f6f4.f32.e4m3.e4m3.f32", "not a modelled form"),
])  # fmt: skip
def test_refused(form, message):
    text = f"mma.sync.aligned.{form} {OPERANDS};"
    with pytest.raises(ptxsim.PtxError, match=message):
        ptxsim.load(register_kernel(text, 10, 4))


def test_wrong_register_count_is_named():
    wrong = OPERANDS.replace("{%r0, %r1, %r2, %r3}", "{%r0, %r1}")
    text = f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {wrong};"
    with pytest.raises(ptxsim.PtxError, match=r"\[4, 4, 2, 4\] registers, not \[4, 2, 2, 4\]"):
        ptxsim.load(register_kernel(text, 10, 4))


def test_a_part_of_the_warp_is_reported():
    text = f"setp.lt.u32 %p, %t, 16; @%p mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {OPERANDS};"
    ptx = register_kernel(text, 10, 4)
    data, out = np.zeros((10, 32), np.uint32), np.zeros((4, 32), np.uint32)
    result = ptxsim.load(ptx).launch("k", block=32, args=[data, out])
    assert [f.kind for f in result.findings] == ["collective"]


UNTAKEN = """.version 9.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b32 %t, %r<2>, %c, %o<4>; .reg .b64 %p;
mov.u32 %t, %tid.x; ld.param.u64 %p, [p]; mad.wide.u32 %p, %t, 16, %p;
mov.b32 %r0, 0x3C003C00; mov.b32 %c, 0; mov.b32 %o1, 7;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%o0, _, %o2, _}, {%r0, %r0, %r0, %r0}, {%r0, %r0},
  {%c, %c, %c, %c};
bar.sync 0; mov.b32 %o3, 777; st.global.v4.b32 [%p], {%o0, %o1, %o2, %o3}; ret;
}
"""


@pytest.mark.parametrize("checks", [True, False])
def test_results_that_nobody_takes(checks):
    """nvcc writes `_` for them. As slot -1 it would be the last constant of the warp before."""
    out = np.zeros((64, 4), np.uint32)
    result = ptxsim.load(UNTAKEN).launch("k", block=64, args=[out], checks=checks)
    sixteen = np.float32(16).view(np.uint32)
    assert not result.findings and (out == [sixteen, 7, sixteen, 777]).all()


def test_accumulators_that_were_never_set():
    """A chip adds to whatever the registers hold."""
    operands = OPERANDS.replace("%r6, %r7, %r8, %r9", "%o0, %o1, %o2, %o3")
    text = f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {operands};"
    zero = "".join(f"mov.b32 %o{i}, 0;" for i in range(4))
    for before, kinds, result in (("", ["uninitialized"], np.nan), (zero, [], 0)):
        data, out = np.zeros((10, 32), np.uint32), np.zeros((4, 32), np.float32)
        module = ptxsim.load(register_kernel(before + text, 10, 4))
        run = module.launch("k", block=32, args=[data, out.view(np.uint32)])
        assert [f.kind for f in run.findings] == kinds
        assert np.array_equal(out, np.full_like(out, result), equal_nan=True)
