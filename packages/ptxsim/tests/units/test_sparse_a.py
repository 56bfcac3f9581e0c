"""mma.sp and wgmma.mma_async.sp against numpy products of A with its zeros."""

from __future__ import annotations

import numpy as np
import pytest
from test_mma import bits_of, pack, parts, random_matrix, unpack
from test_wgmma import A_AT, B_AT, FENCE, FILL, SHARED, START, d_of, image, layout
from test_wgmma import tail as tail_of
from warp_kernels import register_kernel, vector

import ptxsim
from ptxsim.isa.layouts.descriptors import encode_matrix_descriptor
from ptxsim.isa.layouts.fragments import mma_a, mma_b, mma_d, wgmma_a

PAIRS = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
FORMS = [
    *(f"m16n8k{k}.row.col.{d}.f16.f16.{d}" for k in (16, 32) for d in ("f16", "f32")),
    *(f"m16n8k{k}.row.col.f32.bf16.bf16.f32" for k in (16, 32)),
    *(f"m16n8k{k}.row.col.f32.tf32.tf32.f32" for k in (8, 16)),
    "m16n8k64.row.col.f16.e4m3.e5m2.f16", "m16n8k64.row.col.f32.e5m2.e4m3.f32",
    "m16n8k32.row.col.s32.s8.u8.s32", "m16n8k64.row.col.satfinite.s32.u8.s8.s32",
    "m16n8k64.row.col.s32.s4.u4.s32", "m16n8k128.row.col.s32.u4.s4.s32",
]  # fmt: skip


def compressed(rng, rows: int, k: int, kind: str):
    """(A, stored elements, indices (rows, chunks)) with random positions."""
    bits = bits_of(kind)
    a, stored = np.zeros((rows, k), int), random_matrix(rng, (rows, k // 2), kind).astype(int)
    if bits == 32:  # one of two, named by the position of its first half
        first = rng.integers(0, 2, (rows, k // 2))
        np.put_along_axis(a.reshape(rows, -1, 2), first[..., None], stored[..., None], 2)
        return a, stored, np.where(first, 0b1110, 0b0100)
    part = 2 if bits == 4 else 1
    pairs = PAIRS[rng.integers(0, 6, (rows, k // part // 4))]
    chunks = a.reshape(rows, -1, 4, part)
    np.put_along_axis(chunks, pairs[..., None], stored.reshape(rows, -1, 2, part), 2)
    return a, stored, pairs[..., 0] + 4 * pairs[..., 1]


def metadata(indices: np.ndarray, bits: int, selector: int) -> np.ndarray:
    """uint32 (32,) of a warp: 16-bit halves of rows g and g + 8, or of smaller types, one row per thread."""
    rows, chunks = indices.shape
    out = np.zeros(32, np.uint32)
    first = selector * chunks // 4
    for lane in range(32):
        g, t = lane // 4, lane % 4 - first
        if not 0 <= t < max(chunks // 4, 1):
            continue
        if bits >= 16:
            taken = np.concatenate([indices[g, 4 * t : 4 * t + 4], indices[g + 8, 4 * t : 4 * t + 4]])
        else:
            taken = indices[g + 8 * (t % 2), 8 * (t // 2) : 8 * (t // 2) + 8]
        out[lane] = sum(int(x) << 4 * i for i, x in enumerate(taken))
    return out


def run_sp(form: str, selector: int, name="sp::ordered_metadata", change=None, value=1):
    """(D, A times B plus C, result) of one mma.sp. change: an index whose chunk stores `value`."""
    m, n, k, td, ta, tb, tc = parts(form)
    rng = np.random.default_rng(k)
    a, stored, indices = compressed(rng, m, k, ta)
    if change is not None:
        indices[3, 1], stored[3, 2:4] = change, value
    b, c = random_matrix(rng, (k, n), tb), random_matrix(rng, (m, n), "s8" if tc == "s32" else tc)
    row, column = mma_a(m, k // 2, bits_of(ta))
    data = [pack(stored[row, column], ta), pack(b[mma_b(k, n, bits_of(tb))], tb), pack(c[mma_d(m, n)], tc)]
    data.append(metadata(indices, bits_of(ta), selector)[None])
    starts = np.cumsum([0] + [len(x) for x in data])
    va, vb, vc = (vector("r", int(at), len(x)) for at, x in zip(starts, data[:3], strict=False))
    count = len(data[2])
    matrices = ", ".join([vector("o", 0, count), va, vb, vc])
    text = f"mma.{name}.sync.aligned.{form} {matrices}, %r{starts[3]}, {selector};"
    ptx = register_kernel(text, int(starts[-1]), count)
    d, out = np.zeros((m, n), float if td[0] == "f" else np.int64), np.zeros((count, 32), np.uint32)
    given = np.ascontiguousarray(np.concatenate(data))
    result = ptxsim.load(ptx).launch("k", block=32, args=[given, out])
    d[mma_d(m, n)] = unpack(out, td)
    return d, a @ b + c, result


@pytest.mark.parametrize("form", FORMS)
def test_every_selector(form):
    _, _, k, _, kind, _, _ = parts(form)
    chunks = k // {4: 8, 32: 2}.get(bits_of(kind), 4)
    for selector in range(16 // chunks):
        d, expected, result = run_sp(form, selector)
        assert result.verdict == "clean" and np.array_equal(d, expected)


@pytest.mark.parametrize("name, change, value, verdict", [
    ("sp", 0b0001, 1, "clean"), ("sp::ordered_metadata", 0b0001, 1, "error"), ("sp", 0b1010, 1, "error"),
    ("sp::ordered_metadata", 0b0000, 0, "review"),
])  # fmt: skip
def test_indices_without_a_meaning(name, change, value, verdict):
    _, _, result = run_sp("m16n8k32.row.col.f32.f16.f16.f32", 1, name, change, value)
    assert result.verdict == verdict
    assert verdict == "clean" or "row 3, chunk 1: 0b" in result.findings[0].message


def test_refused():
    operands = ", ".join(
        [vector("o", 0, 4), vector("r", 0, 4), vector("r", 4, 4), vector("o", 0, 4), "%r8, 2"]
    )
    text = f"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {operands};"
    with pytest.raises(ptxsim.PtxError, match="selector is a constant from 0 to 1"):
        ptxsim.load(register_kernel(text, 9, 4))


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("kinds, mn, swizzle", [
    (("f32", "f16", "f16"), (False, False), 64), (("f16", "f16", "f16"), (True, True), 128),
    (("f32", "bf16", "bf16"), (True, False), 0), (("f32", "tf32", "tf32"), (False, False), 64),
    (("f32", "e4m3", "e5m2"), (False, False), 128), (("s32", "u8", "s8"), (False, False), 0),
])  # fmt: skip
@pytest.mark.parametrize("registers", [False, True])
def test_wgmma(kinds, mn, swizzle, registers, order):
    n, (d_kind, a_kind, b_kind), rng = 16, kinds, np.random.default_rng(5)
    bits = bits_of(a_kind)
    k, selector = 512 // bits, int(bits >= 16)
    mn = (mn[0] and not registers, mn[1])
    a, stored, indices = compressed(rng, 64, k, a_kind)
    b, memory = random_matrix(rng, (n, k), b_kind), np.zeros(SHARED, np.uint8)
    a_desc = layout(64, k // 2, bits // 8, mn[0], swizzle, START + A_AT)
    b_desc = layout(n, k, bits // 8, mn[1], swizzle, START + B_AT)
    image(b, b_kind, b_desc, mn[1], memory)
    image(stored, a_kind, a_desc, mn[0], memory)
    count, operand = n // (4 if d_kind == "f16" else 2), "%y2"
    data = [metadata(x, bits, selector) for x in indices.reshape(4, 16, -1)]
    data = [np.concatenate(data)[None]]
    if registers:
        operand, place = vector("r", 1, 4), wgmma_a(k // 2, bits)
        data.append(pack(stored[place], a_kind))
    last = tail_of(kinds, registers).replace("p", "%q", 1)
    if any(mn):
        last = f"%q, 1, 1, {'' if registers else f'{int(mn[0])}, '}{int(mn[1])}"
    text = f"""{FILL} mov.b64 %y2, {encode_matrix_descriptor(a_desc, "sm_90")};
    mov.b64 %y3, {encode_matrix_descriptor(b_desc, "sm_90")}; {FENCE}
    wgmma.mma_async.sp.sync.aligned.m64n{n}k{k}.{".".join(kinds)}
    {vector("o", 0, count)}, {operand}, %y3, %r0, {selector}, {last};
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"""
    given = np.concatenate([memory.view(np.uint32).reshape(-1, 128), *data])
    assert np.array_equal(d_of(text, given, n, d_kind, order), a @ b.T)
