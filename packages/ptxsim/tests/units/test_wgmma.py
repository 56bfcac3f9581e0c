"""wgmma: products of every type, shape and layout, and when accumulators may be read."""

from __future__ import annotations

import numpy as np
import pytest
from test_mma import NUMPY, bits_of, pack, random_matrix
from warp_kernels import register_kernel, vector

import ptxsim
from ptxsim.isa.layouts.descriptors import MatrixDescriptor, encode_matrix_descriptor, operand_addresses
from ptxsim.isa.layouts.fragments import wgmma_a, wgmma_d

ORDERS = ["program", "adverse", 3]
A_AT, B_AT, SHARED = 0, 32768, 65536  # bytes from the start of the buffer
START = 1024  # offset of a kernel's first 1024-byte aligned shared buffer
DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
FENCE = "fence.proxy.async.shared::cta; bar.sync 0; wgmma.fence.sync.aligned;"
FILL = """
ld.param.u64 %y0, [pin]; cvta.to.global.u64 %y0, %y0; mul.wide.u32 %y1, %t, 16; add.u64 %y0, %y0, %y1;
shl.b32 %x0, %t, 4; add.u32 %x1, %sm, %x0; mov.u32 %x2, 0;
FILL: ld.global.v4.b32 {%x4, %x5, %x6, %x7}, [%y0]; st.shared.v4.b32 [%x1], {%x4, %x5, %x6, %x7};
add.u64 %y0, %y0, 2048; add.u32 %x1, %x1, 2048; add.u32 %x2, %x2, 2048;
setp.lt.u32 %p, %x2, 65536; @%p bra FILL;
setp.eq.u32 %p, %t, %t;
"""


def layout(rows: int, depth: int, size: int, mn: bool, swizzle: int, start: int) -> MatrixDescriptor:
    """A dense canonical layout: strides that place 8-row atoms one after another."""
    span = swizzle or 16
    if swizzle == 0:
        # core matrices of 8 rows x 16 bytes; along the contiguous dimension first
        across = (rows if mn else depth) * size // 16 * 128
        return MatrixDescriptor(start, *((across, 128) if mn else (128, across)), 0)
    if mn:  # leading: next `span` bytes along MN; stride: next 8 steps of K
        return MatrixDescriptor(start, depth * span, 8 * span, swizzle)
    return MatrixDescriptor(start, 16, 8 * span, swizzle)


def image(matrix: np.ndarray, kind: str, desc: MatrixDescriptor, mn: bool, memory: np.ndarray) -> None:
    """Writes (rows, depth) where the descriptor says."""
    size = bits_of(kind) // 8
    places = operand_addresses(desc, *matrix.shape, size, mn) - START
    raw = np.ascontiguousarray(matrix.astype(NUMPY[kind])).view(f"u{size}")
    memory.view(f"u{size}")[places // size] = raw


def product(
    n,
    kinds,
    swizzle=128,
    mn=(False, False),
    registers=False,
    tail="p, 1, 1",
    order="program",
    c=None,
    form="m64n{n}k{k}.{kinds}",
):
    """(D from the simulator, A, B) of one wgmma of random small integers, or fresh zeros for C."""
    d, a_kind, b_kind = kinds
    k, rng = DEPTH[a_kind], np.random.default_rng(n)
    a, b = random_matrix(rng, (64, k), a_kind), random_matrix(rng, (n, k), b_kind)
    memory = np.zeros(SHARED, np.uint8)
    a_desc = layout(64, k, bits_of(a_kind) // 8, mn[0], swizzle, START + A_AT)
    b_desc = layout(n, k, bits_of(b_kind) // 8, mn[1], swizzle, START + B_AT)
    image(b, b_kind, b_desc, mn[1], memory)
    count = n // (4 if d == "f16" else 2)
    ptx_a, load = "%y2", ""
    if registers:
        rows, columns = wgmma_a(k, bits_of(a_kind))
        memory[:8192].view(np.uint32).reshape(-1, 4)[:128] = pack(a[rows, columns], a_kind).T
        load = "ld.shared.v4.b32 {%x8, %x9, %x10, %x11}, [%x12];"
        ptx_a = "{%x8, %x9, %x10, %x11}"
    else:
        image(a, a_kind, a_desc, mn[0], memory)
    fill = "".join(f"mov.b32 %o{i}, %r{i};" for i in range(count))
    text = f"""{FILL} shl.b32 %x12, %t, 4; add.u32 %x12, %sm, %x12; bar.sync 0; {load} {fill}
    mov.b64 %y2, {encode_matrix_descriptor(a_desc, "sm_90")};
    mov.b64 %y3, {encode_matrix_descriptor(b_desc, "sm_90")};
    {FENCE}
    wgmma.mma_async.sync.aligned.{form.format(n=n, k=k, kinds=".".join(kinds))}
    {vector("o", 0, count)}, {ptx_a}, %y3, %{tail};
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"""
    # the shared image comes first in the input, the registers of C after it
    registers_in = np.zeros((SHARED // 512 + count, 128), np.uint32)
    registers_in[: SHARED // 512] = memory.view(np.uint32).reshape(-1, 128)
    if c is not None:
        registers_in[SHARED // 512 :] = pack(c[wgmma_d(n)], d)
    return d_of(text, registers_in, n, d, order), a, b


def d_of(text: str, given: np.ndarray, n: int, kind: str, order) -> np.ndarray:
    """D, (64, n), of a warpgroup that runs this text. given: the image of shared memory, then registers."""
    count = n // (4 if kind == "f16" else 2)
    ptx = register_kernel(text, given.shape[0] - SHARED // 512, count, shared=SHARED).replace(
        "ld.global.b32 %r0", f"add.u64 %in, %in, {SHARED}; ld.global.b32 %r0"
    )
    out = np.zeros((count, 128), np.uint32)
    result = ptxsim.load(ptx).launch("k", block=128, args=[given, out], order=order)
    assert result.verdict == "clean", result.findings
    values = np.zeros((64, n), np.int64 if kind == "s32" else float)
    values[wgmma_d(n)] = np.ascontiguousarray(out.T).view(NUMPY[kind])
    return values


TYPES = [
    ("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "tf32", "tf32"),
    *((d, a, b) for d in ("f16", "f32") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
    *(("s32", a, b) for a in ("s8", "u8") for b in ("s8", "u8")),
]  # fmt: skip


def tail(kinds, registers=False) -> str:
    """The operands after the matrices: scale-d, signs, transpositions."""
    if kinds[0] == "s32":
        return "p"
    return "p, 1, 1" + (", 0" * (1 if registers else 2) if kinds[1] in ("f16", "bf16") else "")


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize("kinds", TYPES)
def test_types(kinds, registers):
    d, a, b = product(64, kinds, registers=registers, swizzle=32, tail=tail(kinds, registers))
    assert np.array_equal(d, a @ b.T)


@pytest.mark.parametrize("registers", [False, True])
def test_single_bits(registers):
    bits = "m64n{n}k256.s32.b1.b1.and.popc"
    d, a, b = product(24, ("s32", "u8", "u8"), registers=registers, tail="p", form=bits)
    a, b = (np.unpackbits(m.astype(np.uint8), axis=1).astype(int) for m in (a, b))
    assert np.array_equal(d, a @ b.T)


@pytest.mark.parametrize("n", range(8, 257, 8))
def test_every_n(n):
    kinds = ("f32", "bf16", "bf16")
    d, a, b = product(n, kinds, swizzle=32, tail=tail(kinds))
    assert np.array_equal(d, a @ b.T)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("mn", [(False, False), (True, False), (False, True), (True, True)])
def test_layouts(swizzle, mn):
    kinds = ("f32", "f16", "f16")
    d, a, b = product(128, kinds, swizzle, mn, tail=f"p, 1, 1, {int(mn[0])}, {int(mn[1])}")
    assert np.array_equal(d, a @ b.T)


def test_transposed_b_with_a_in_registers():
    d, a, b = product(32, ("f32", "f16", "f16"), 64, (False, True), registers=True, tail="p, 1, 1, 1")
    assert np.array_equal(d, a @ b.T)


@pytest.mark.parametrize("signs, factor", [("-1, 1", -1), ("1, -1", -1), ("-1, -1", 1)])
def test_signs(signs, factor):
    d, a, b = product(16, ("f32", "f16", "f16"), tail=f"p, {signs}, 0, 0")
    assert np.array_equal(d, factor * (a @ b.T))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("scale", ["p", "q"])
@pytest.mark.parametrize("kinds", [("f32", "f16", "f16"), ("f16", "f16", "f16"), ("s32", "s8", "s8")])
def test_accumulates_unless_scale_d_is_false(kinds, scale, order):
    c = np.random.default_rng(1).integers(-50, 50, (64, 48)).astype(float if kinds[0] != "s32" else np.int64)
    d, a, b = product(48, kinds, tail=scale + tail(kinds)[1:], c=c, order=order)
    assert np.array_equal(d, a @ b.T + (c if scale == "p" else 0))


def test_a_row_of_the_128_byte_swizzle_is_where_tma_puts_it():
    """Row r of 128 bytes is at 128 r, its 16-byte chunk i at i ^ (r % 8);
    written without ptxsim's functions.
    """
    a = np.random.default_rng(2).integers(-3, 4, (64, 64)).astype(np.float16)
    memory = np.zeros((64, 8, 8), np.float16)
    for r in range(64):
        for i in range(8):
            memory[r, i ^ (r % 8)] = a[r, 8 * i : 8 * i + 8]
    identity = np.zeros((16, 8, 8), np.float16)
    for r in range(16):
        identity[r, (r // 8) ^ (r % 8), r % 8] = 1
    shared = np.concatenate([memory.reshape(-1), identity.reshape(-1)]).view(np.uint32)
    data = np.zeros((SHARED // 512, 128), np.uint32)
    data.reshape(-1)[: len(shared)] = shared
    step = 2  # the third slice of 16 along K starts 64 bytes into the row
    base = 1 << 62 | (1024 >> 4) << 32 | 1 << 16
    text = f"""{FILL} mov.b64 %y2, {base | (START + 32 * step) >> 4};
    mov.b64 %y3, {base | (START + 8192) >> 4};
    {FENCE} wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {vector("o", 0, 8)}, %y2, %y3, %q, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"""
    out = np.zeros((8, 128), np.uint32)
    ptxsim.load(register_kernel(text, 0, 8, shared=SHARED)).launch("k", block=128, args=[data, out])
    d = np.zeros((64, 16))
    d[wgmma_d(16)] = np.ascontiguousarray(out.T).view(np.float32)
    assert np.array_equal(d, a[:, 16 * step : 16 * step + 16])


# ---- order ----

PREPARE = "shl.b32 %x0, %t, 4; add.u32 %x1, %sm, %x0; mov.b32 %x4, 0x3c003c00;" + "".join(
    f"st.shared.v4.b32 [%x1+{offset}], {{%x4, %x4, %x4, %x4}};" for offset in range(0, 8192, 2048)
)
DESC = f"mov.b64 %y2, {1 << 62 | 64 << 32 | 1 << 16 | START >> 4};"
ZERO = "".join(f"mov.b32 %o{i}, 0;" for i in range(4))
MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%o0, %o1, %o2, %o3}, %y2, %y2, %p, 1, 1, 0, 0;"
COMMIT = "wgmma.commit_group.sync.aligned;"


def run_ones(text: str, order="adverse", outputs: int = 4, block: int = 128):
    """Outputs as float32 (outputs, 128) of a kernel whose shared memory holds ones, and the result."""
    ptx = register_kernel(f"{PREPARE} {DESC} {text}", 0, outputs, shared=16384)
    out = np.zeros((outputs, block), np.float32)
    result = ptxsim.load(ptx).launch(
        "k", block=block, args=[np.zeros(4, np.uint32), out.view(np.uint32)], order=order
    )
    return out, result


def wait(count: int) -> str:
    return f"wgmma.wait_group.sync.aligned {count};"


def test_accumulators_before_the_wait_are_not_the_result():
    late, _ = run_ones(f"{ZERO} {FENCE} {MMA} {COMMIT}")
    early, _ = run_ones(f"{ZERO} {FENCE} {MMA} {COMMIT}", "program")
    assert np.isnan(late).all()
    right = (early.reshape(4, 4, 32) == 16).all(axis=(0, 2))
    assert right.sum() == 1  # the warp that came last: its instruction could run at once


@pytest.mark.parametrize("order", ORDERS)
def test_a_chain_on_the_same_accumulators_needs_no_wait_between(order):
    out, result = run_ones(f"{ZERO} {FENCE} {MMA} {MMA} {COMMIT} {MMA} {COMMIT} {wait(0)}", order)
    assert (out == 48).all() and result.verdict == "clean"


@pytest.mark.parametrize("order", ORDERS)
def test_a_copy_made_before_the_wait_gets_the_value(order):
    """Compilers rename accumulators with mov; ptxas makes both the same register."""
    copies = "".join(f"mov.b32 %x{8 + i}, %o{i};" for i in range(4))
    more = MMA.replace("%o0, %o1, %o2, %o3", "%x8, %x9, %x10, %x11")
    back = "".join(f"mov.b32 %o{i}, %x{8 + i};" for i in range(4))
    out, _ = run_ones(f"{ZERO} {FENCE} {MMA} {copies} {more} {COMMIT} {wait(0)} {back}", order)
    assert (out == 32).all()


def test_numbers_computed_from_pending_accumulators_stay_what_they_are():
    """They hold no result yet: what is computed must not be taken for a register past the last of D."""
    out, result = run_ones(f"{ZERO} {FENCE} {MMA} {COMMIT} add.u32 %o1, %o0, 31; {wait(0)}")
    assert (out[0] == 16).all() and (out[1].view(np.uint32) % 128 == 31).all()
    assert result.verdict == "error"


def test_wait_group_leaves_the_youngest_groups_pending():
    other = MMA.replace("%o0, %o1, %o2, %o3", "%o4, %o5, %o6, %o7")
    zero = ZERO + "".join(f"mov.b32 %o{i}, 0;" for i in range(4, 8))
    out, _ = run_ones(f"{zero} {FENCE} {MMA} {COMMIT} {other} {COMMIT} {wait(1)}", outputs=8)
    assert (out[:4] == 16).all() and np.isnan(out[4:]).all()


def test_shared_memory_overwritten_before_the_wait_is_read_late():
    overwrite = "st.shared.v4.b32 [%x1], {%x5, %x5, %x5, %x5}; mov.b32 %x5, 0;"
    text = f"{ZERO} mov.b32 %x5, 0; {FENCE} {MMA} {COMMIT} {overwrite} bar.sync 0; {wait(0)}"
    assert (run_ones(text)[0] != 16).any() and (run_ones(text.replace(overwrite, ""))[0] == 16).all()


def test_missing_fence_is_an_error():
    without = FENCE.replace("wgmma.fence.sync.aligned;", "")
    _, result = run_ones(f"{ZERO} {without} {MMA} {COMMIT} {wait(0)}", "program")
    assert [f.kind for f in result.findings] == ["race"]
    change = "add.f32 %o0, %o0, %o0;"
    for fence, kinds in (("wgmma.fence.sync.aligned;", []), ("", ["race"])):
        _, result = run_ones(
            f"{ZERO} {FENCE} {MMA} {COMMIT} {wait(0)} {change} {fence} {MMA} {COMMIT} {wait(0)}"
        )
        assert [f.kind for f in result.findings] == kinds


def test_three_warps_are_no_warpgroup():
    _, result = run_ones(f"{ZERO} {FENCE} {MMA} {COMMIT} {wait(0)}", block=96)
    assert {f.kind for f in result.findings} == {"collective", "deadlock"}


def test_a_warp_that_stays_away_is_a_deadlock():
    skip = "setp.lt.u32 %q, %t, 96; @!%q bra END;"
    _, result = run_ones(f"{ZERO} {FENCE} {skip} {MMA} {COMMIT} {wait(0)} END:")
    assert {f.kind for f in result.findings} == {"deadlock"}
    assert "wgmma that warp 3 never issues" in result.findings[0].message


def test_accumulators_that_were_never_set():
    """A chip adds to whatever the registers hold; the first K step must not add, or they must be zeroed."""
    out, result = run_ones(f"{FENCE} {MMA} {COMMIT} {wait(0)}")
    assert [f.kind for f in result.findings] == ["uninitialized"] and np.isnan(out).all()
    assert "never written: %o0 and 3 more" in result.findings[0].message
    out, result = run_ones(f"{FENCE} {MMA.replace('p, 1', 'q, 1')} {COMMIT} {wait(0)}")
    assert result.verdict == "clean" and (out == 16).all()


@pytest.mark.parametrize("change, kind", [
    ("or.b64 %y2, %y2, 0x3fff;", "out-of-bounds"),
    ("mov.b64 %y2, 0;", "out-of-bounds"),
    ("cvt.u64.u32 %y3, %t; add.u64 %y2, %y2, %y3;", "collective"),
])  # fmt: skip
def test_bad_descriptors_are_findings(change, kind):
    _, result = run_ones(f"{ZERO} {change} {FENCE} {MMA} {COMMIT} {wait(0)}")
    assert kind in {f.kind for f in result.findings}


@pytest.mark.parametrize("text, message", [
    ("m64n12k16.f32.f16.f16 {%o0, %o1, %o2, %o3}, %y2, %y2, %p, 1, 1, 0, 0;", "m64n12k16"),
    ("m64n8k8.f32.f16.f16 {%o0, %o1, %o2, %o3}, %y2, %y2, %p, 1, 1, 0, 0;", "no such shape"),
    ("m64n8k16.f32.bf16.f16 {%o0, %o1, %o2, %o3}, %y2, %y2, %p, 1, 1, 0, 0;", "not a modelled form of wgmma"),
    ("m64n16k16.f32.f16.f16 {%o0, %o1, %o2, %o3}, %y2, %y2, %p, 1, 1, 0, 0;", "8 registers"),
    ("m64n8k16.f32.f16.f16 {%o0, %o1, %o2, %o3}, %y2, %y2, %p, 1, 1, 0;", "4 immediates"),
    ("m64n8k16.f32.f16.f16 {%o0, %o1, %o2, %o3}, %y2, %y2, %p, 2, 1, 0, 0;", "imm-scale"),
    ("m64n40k32.s32.s8.s8 {%o0, %o1, %o2, %o3}, %y2, %y2, %p;", "no such shape"),
])  # fmt: skip
def test_refused(text, message):
    with pytest.raises(ptxsim.PtxError, match=message):
        ptxsim.load(register_kernel(f"wgmma.mma_async.sync.aligned.{text}", 0, 4, shared=16384))
