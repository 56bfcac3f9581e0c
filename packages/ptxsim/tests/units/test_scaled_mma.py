"""mma.sync with a .kind (sm_120a) and m8n8k4 of f16 (sm_70) against numpy, with fragments written here."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from test_mma import pack
from test_sparse_a import compressed, metadata
from warp_kernels import register_kernel, run_registers, vector

import ptxsim

FLOATS = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn, "e2m1": ml_dtypes.float4_e2m1fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
LANE = np.arange(32)
G, T = LANE // 4, LANE % 4


def codes(values: np.ndarray, kind: str, packed: bool) -> np.ndarray:
    """Bytes; four bits of e2m1 lie in the middle of a byte, or two in each byte."""
    raw = values.astype(FLOATS[kind]).view(np.uint8)
    if packed:
        return raw[..., ::2] | raw[..., 1::2] << 4
    return raw << 2 if kind == "e2m1" else raw


def words(rows: np.ndarray, starts) -> list[np.ndarray]:
    """The registers of lanes whose first bytes are at `starts` (row per lane, byte)."""
    return [rows[row[:, None], at[:, None] + np.arange(4)].copy().view(np.uint32)[:, 0] for row, at in starts]


def registers(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    """Four registers of A (16, 32 bytes), then one for each 16 bytes of the columns of B (8, bytes)."""
    of_a = [(G + 8 * (i % 2), 4 * T + 16 * (i // 2)) for i in range(4)]
    return words(a, of_a) + words(b, [(G, 4 * T + 16 * i) for i in range(b.shape[1] // 16)])


def factors(rng, kind: str, rows: int, count: int) -> np.ndarray:
    some = [0.25, 0.5, 1, 2, 8] if kind == "ue8m0" else [0.5, 0.75, 1.5, 3]
    return rng.choice(some, (rows, count))


KINDS = [
    ("f8f6f4", 32, "e2m1", "e3m2", "", 0), ("f8f6f4", 32, "e2m3", "e5m2", "", 0),
    ("mxf8f6f4", 32, "e4m3", "e2m1", "ue8m0", 1), ("mxf4", 64, "e2m1", "e2m1", "ue8m0", 2),
    *(("mxf4nvf4", 64, "e2m1", "e2m1", kind, n) for kind, n in (("ue8m0", 2), ("ue8m0", 4), ("ue4m3", 4))),
]  # fmt: skip


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind, k, a_kind, b_kind, scale, count", KINDS)
def test_kinds(kind, k, a_kind, b_kind, scale, count, sparse):
    rng, packed, width = np.random.default_rng(k + count), kind[:4] == "mxf4", k * (1 + sparse)
    a = stored = rng.integers(-2, 3, (16, k)).astype(float)
    if sparse:
        a, stored, indices = compressed(rng, 16, width, "s4" if packed else "s8")
        a, stored = np.clip(a, -3, 3).astype(float), np.clip(stored, -3, 3).astype(float)
    b, c = rng.integers(-2, 3, (8, width)).astype(float), rng.integers(-9, 9, (16, 8)).astype(np.float32)
    data = registers(codes(stored, a_kind, packed), codes(b, b_kind, packed))
    place = [(G, 2 * T), (G, 2 * T + 1), (G + 8, 2 * T), (G + 8, 2 * T + 1)]
    data += [c[at].view(np.uint32) for at in place]
    second = len(data) - 8
    operands = [vector("o", 0, 4), vector("r", 0, 4), vector("r", 4, second), vector("r", 4 + second, 4)]
    if sparse:
        operands += [f"{{%r{len(data)}}}", "0"]  # in braces, as CUTLASS writes it
        data.append(metadata(indices, 4 if packed else 8, 0))
    name = f"mma.sync.aligned.kind::{kind}{'.sp::ordered_metadata' * sparse}.m16n8k{width}.row.col"
    types = f"f32.{a_kind}.{b_kind}.f32"
    if count:
        sa, sb = factors(rng, scale, 16, count), factors(rng, scale, 8, count)
        a, b = a * np.repeat(sa, width // count, 1), b * np.repeat(sb, width // count, 1)
        byte, noise = {1: 3, 2: 2, 4: 0}[count], rng.integers(0, 256, (2, 32, 4)).astype(np.uint8)
        for lane in range(32):  # thread-id 1 of A: the second pair; 2 of B: the third thread
            if lane % 4 >= 2:
                noise[0, lane, byte : byte + count] = codes(sa[lane // 4 + 8 * (lane % 2)], scale, False)
            if lane % 4 == 2:
                noise[1, lane, byte : byte + count] = codes(sb[lane // 4], scale, False)
        operands += [f"%r{len(data)}, {{{byte}, 1}}", f"%r{len(data) + 1}, {{{byte}, 2}}"]
        data += list(noise.view(np.uint32)[..., 0])
        name, types = f"{name}.block_scale.scale_vec::{count}X", f"{types}.{scale}"
    text = f"{name}.{types} {', '.join(operands)};"
    out = run_registers(register_kernel(text, len(data), 4, target="sm_120a"), np.stack(data), 4)
    expected = a @ b.T + c
    assert all(np.array_equal(out[i].view(np.float32), expected[at]) for i, at in enumerate(place))


@pytest.mark.parametrize("d_kind", ["f16", "f32"])
@pytest.mark.parametrize("a_side, b_side", [("row", "col"), ("col", "row"), ("row", "row")])
def test_four_products(a_side, b_side, d_kind):
    rng, product, high = np.random.default_rng(1), LANE % 16 // 4, LANE // 16 * 4
    a, b, c = (rng.integers(-4, 5, (4, *shape)).astype(float) for shape in ((8, 4), (4, 8), (8, 8)))
    a[2, 1, 1] = np.inf  # belongs to one product only
    b[2, 1] = np.abs(b[2, 1]) + 1
    four, eight = np.arange(4), np.arange(8)
    p, t, h = product[:, None], T[:, None], high[:, None]
    mine_a = a[p, t + h, four] if a_side == "row" else a[p, four + h, t]
    mine_b = b[p, four, t + h] if b_side == "col" else b[p, t, four + h]
    place = (p, t + h, eight)
    if d_kind == "f32":
        place = (p, LANE[:, None] % 2 + (eight & 2) + h, (eight & 4) + (T[:, None] & 2) + (eight & 1))
    data = np.concatenate([pack(mine_a, "f16"), pack(mine_b, "f16"), pack(c[place], d_kind)])
    count = len(data) - 4
    operands = ", ".join([vector("o", 0, count), vector("r", 0, 2), vector("r", 2, 2), vector("r", 4, count)])
    text = f"mma.sync.aligned.m8n8k4.{a_side}.{b_side}.{d_kind}.f16.f16.{d_kind} {operands};"
    out = run_registers(register_kernel(text, len(data), count), data, count)
    kind = np.float16 if d_kind == "f16" else np.float32
    assert np.array_equal(np.ascontiguousarray(out.T).view(kind), (a @ b + c)[place])


@pytest.mark.parametrize("form", [
    "m16n8k32.row.col.f32.e2m1.e2m1.f32", "m16n8k32.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
    "m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
    "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3",
])  # fmt: skip
def test_forms_that_ptxas_refuses(form):
    operands = ", ".join([vector("o", 0, 4), vector("r", 0, 4), vector("r", 4, 2), vector("r", 6, 4)])
    with pytest.raises(ptxsim.PtxError, match="not a modelled form|not modelled"):
        text = f"mma.sync.aligned.{form} {operands}, %r0, {{0, 0}}, %r0, {{0, 0}};"
        ptxsim.load(register_kernel(text, 10, 4))
