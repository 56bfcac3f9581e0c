"""Bulk copies without a tensor map, their reductions, st.async and red.async."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from warp_kernels import register_kernel

import ptxsim

ORDERS = ["program", "adverse", 1]
TX = "mbarrier::complete_tx::bytes"
LOAD = f"cp.async.bulk.shared::cluster.global.{TX}"
# %x0: this thread's word in shared memory; %x1: one-arrival mbarrier; %y0, %y1: pin and pout; %p: thread 0
SETUP = """
ld.param.u64 %y0, [pin]; ld.param.u64 %y1, [pout]; cvta.to.global.u64 %y0, %y0; cvta.to.global.u64 %y1, %y1;
shl.b32 %x0, %t, 2; add.u32 %x0, %sm, %x0; add.u32 %x1, %sm, 8192; setp.eq.u32 %p, %t, 0;
@%p mbarrier.init.shared.b64 [%x1], 1; fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 0;
"""
WAIT = "W{0}: mbarrier.try_wait.parity.shared.b64 %q, [{1}], {0}; @!%q bra W{0};"
ANNOUNCE = "@%p mbarrier.arrive.expect_tx.shared.b64 _, [%x1], {};"


def run(text: str, data: np.ndarray, out: np.ndarray, order="program", expect="clean", ctas: int = 1):
    ptx = register_kernel(SETUP + text, 0, 0, shared=16384)
    launch = {"grid": ctas, "cluster": ctas, "block": 32, "args": [data, out], "order": order}
    result = ptxsim.load(ptx).launch("k", **launch)
    assert result.verdict == expect, result.findings
    return out


@pytest.mark.parametrize("order", ORDERS)
def test_there_and_back(order):
    text = f"""
    {ANNOUNCE.format(128)} @%p {LOAD} [%sm], [%y0], 128, [%x1];
    {WAIT.format(0, "%x1")}
    ld.shared.u32 %x2, [%x0]; add.u32 %x2, %x2, 1; st.shared.u32 [%x0], %x2;
    fence.proxy.async.shared::cta; bar.sync 0;
    @%p cp.async.bulk.global.shared::cta.bulk_group [%y1], [%sm], 128;
    @%p cp.async.bulk.commit_group; @%p cp.async.bulk.wait_group 0;
    """
    data = np.arange(32, dtype=np.uint32)
    assert np.array_equal(run(text, data, np.zeros(32, np.uint32), order), data + 1)


def test_before_the_wait_the_bytes_may_not_be_there():
    text = f"{ANNOUNCE.format(128)} @%p {LOAD} [%sm], [%y0], 128, [%x1]; bar.sync 0;"
    text += (
        "mul.wide.u32 %y2, %t, 4; add.u64 %y1, %y1, %y2; ld.shared.u32 %x2, [%x0]; st.global.u32 [%y1], %x2;"
    )
    out = run(text, np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32), "adverse", expect="error")
    assert (out == 0xFFFF_FFFF).all()


REDUCTIONS = [
    ("add.u32", np.uint32), ("min.s32", np.int32), ("max.u64", np.uint64), ("and.b32", np.uint32),
    ("xor.b64", np.uint64), ("or.b32", np.uint32), ("inc.u32", np.uint32), ("dec.u32", np.uint32),
    ("add.f32", np.float32), ("add.f64", np.float64), ("add.noftz.f16", np.float16),
    ("add.noftz.bf16", ml_dtypes.bfloat16), ("max.f16", np.float16),
]  # fmt: skip
NUMPY = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
         "xor": np.bitwise_xor, "inc": lambda a, b: np.where(a >= b, 0, a + 1),
         "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - 1)}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("operation, kind", REDUCTIONS)
def test_reduction_into_global_memory(operation, kind, order):
    count = 128 // np.dtype(kind).itemsize
    rng = np.random.default_rng(0)
    old, new = rng.integers(0, 9, count).astype(kind), rng.integers(0, 9, count).astype(kind)
    text = f"""
    {ANNOUNCE.format(128)} @%p {LOAD} [%sm], [%y0], 128, [%x1];
    {WAIT.format(0, "%x1")}
    @%p cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%y1], [%sm], 128;
    @%p cp.async.bulk.commit_group; @%p cp.async.bulk.wait_group 0;
    """
    out = run(text, new, old.copy(), order)
    assert np.array_equal(out, NUMPY[operation.split(".")[0]](old, new).astype(kind))


# CTA 0 acts on CTA 1: %x4 and %x5 are its buffer and mbarrier; CTA 1 copies its buffer to pout
PEER = """
mov.u32 %x3, %cluster_ctarank; mapa.shared::cluster.u32 %x4, %sm, 1; mapa.shared::cluster.u32 %x5, %x1, 1;
mul.wide.u32 %y2, %t, 4; add.u64 %y3, %y0, %y2; ld.global.u32 %x6, [%y3]; st.shared.u32 [%x0], %x6;
setp.eq.u32 %q, %x3, 1; and.pred %q, %q, %p; @%q mbarrier.arrive.expect_tx.shared.b64 _, [%x1], 128;
fence.proxy.async; barrier.cluster.arrive; barrier.cluster.wait;
setp.eq.u32 %q, %x3, 1; @%q bra TAKE;
{send}
bra DONE;
TAKE: {wait}
ld.shared.u32 %x6, [%x0]; add.u64 %y1, %y1, %y2; st.global.u32 [%y1], %x6;
DONE: barrier.cluster.arrive; barrier.cluster.wait;
"""

THERE = "add.u32 %x7, %x4, %x0; sub.u32 %x7, %x7, %sm;"  # the same word of CTA 1


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("send, result", [
    (f"@%p cp.async.bulk.shared::cluster.shared::cta.{TX} [%x4], [%sm], 128, [%x5];", lambda x: x),
    (f"@%p cp.reduce.async.bulk.shared::cluster.shared::cta.{TX}.add.u32 [%x4], [%sm], 128, [%x5];",
     lambda x: 2 * x),
    (f"{THERE} st.async.shared::cluster.{TX}.u32 [%x7], %t, [%x5];", lambda x: np.arange(32)),
    (f"{THERE} red.async.relaxed.cluster.shared::cluster.{TX}.add.u32 [%x7], %t, [%x5];",
     lambda x: x + np.arange(32)),
], ids=["copy", "reduce", "st", "red"])  # fmt: skip
def test_to_another_cta(send, result, order):
    data = np.random.default_rng(2).integers(0, 99, 32).astype(np.uint32)
    text = PEER.format(send=send, wait=WAIT.format(0, "%x1"))
    out = run(text, data, np.zeros(32, np.uint32), order, ctas=2, expect="clean")
    assert np.array_equal(out, result(data))


@pytest.mark.parametrize("order", ORDERS)
def test_a_mask_selects_bytes_of_each_16(order):
    """Other threads may write the bytes between, as CUB's scan does at the ends of its tiles."""
    text = """
    st.shared.u32 [%x0], -1; mul.wide.u32 %y2, %t, 4; add.u64 %y2, %y1, %y2; st.global.u8 [%y2], 7;
    mov.b16 %h, 0x7ffe; fence.proxy.async.shared::cta; bar.sync 0;
    @%p cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%y1], [%sm], 64, %h;
    @%p cp.async.bulk.commit_group; @%p cp.async.bulk.wait_group 0;
    """.replace("st.global.u8", "and.b32 %x2, %t, 3; setp.eq.u32 %q, %x2, 0; @%q st.global.u8")
    out = run(".reg .b16 %h;" + text, np.zeros(1, np.uint32), np.zeros(128, np.uint8), order)
    chunk = [7, *[255] * 14, 0]
    assert out.tolist() == chunk * 4 + [7, *[0] * 15] * 4


@pytest.mark.parametrize("order", ORDERS)
def test_bytes_outside_of_the_source_are_not_read_but_count(order):
    text = f"""
    {ANNOUNCE.format(64)} mov.u32 %x2, {{}};
    @%p cp.async.bulk.shared::cta.global.{TX}.ignore_oob [%sm], [%y0], 64, 4, %x2, [%x1];
    {WAIT.format(0, "%x1")} setp.lt.u32 %q, %t, {{}}; setp.ge.and.u32 %q, %t, 1, %q;
    mul.wide.u32 %y2, %t, 4; add.u64 %y1, %y1, %y2;
    @%q ld.shared.u32 %x2, [%x0]; @%q st.global.u32 [%y1], %x2;
    """
    data = np.arange(50, 63, dtype=np.uint32)
    out = run(text.format(12, 13), data, np.zeros(32, np.uint32), order)
    assert out.tolist() == [0, *data[1:], *[0] * 19]
    run(text.format(8, 13), data, out, order, expect="error")


@pytest.mark.parametrize("order", ORDERS)
def test_multicast(order):
    """CTA 0 fetches 128 bytes for both; each CTA writes its copy to its own place."""
    text = f"""
    mov.u32 %x3, %cluster_ctarank; {ANNOUNCE.format(128)}
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.eq.u32 %q, %x3, 0; and.pred %q, %q, %p; mov.b16 %h, 3;
    @%q cp.async.bulk.shared::cluster.global.{TX}.multicast::cluster [%sm], [%y0], 128, [%x1], %h;
    {WAIT.format(0, "%x1")}
    ld.shared.u32 %x6, [%x0]; shl.b32 %x7, %x3, 5; add.u32 %x7, %x7, %t; mul.wide.u32 %y2, %x7, 4;
    add.u64 %y1, %y1, %y2; st.global.u32 [%y1], %x6; barrier.cluster.arrive; barrier.cluster.wait;
    """
    data = np.arange(100, 132, dtype=np.uint32)
    out = run(".reg .b16 %h;" + text, data, np.zeros(64, np.uint32), order, ctas=2)
    assert np.array_equal(out, np.tile(data, 2))


@pytest.mark.parametrize("operands, kind", [
    ("[%sm], [%y0], 120, [%x1]", "misaligned"), ("[%sm+8], [%y0], 16, [%x1]", "misaligned"),
    ("[%sm], [%y0+64], 128, [%x1]", "out-of-bounds"), ("[%sm+16368], [%y0], 32, [%x1]", "out-of-bounds"),
])  # fmt: skip
def test_bad_operands_are_findings(operands, kind):
    ptx = register_kernel(f"{SETUP} @%p {LOAD} {operands};", 0, 0, shared=16384)
    args = [np.zeros(32, np.uint32), np.zeros(32, np.uint32)]
    result = ptxsim.load(ptx).launch("k", block=32, args=args)
    assert kind in {f.kind for f in result.findings}


@pytest.mark.parametrize("text", [
    "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%y1], [%sm], 16;",
    f"cp.async.bulk.global.shared::cta.{TX} [%y1], [%sm], 16, [%x1];",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.u32 [%y1], [%sm], 16;",
])  # fmt: skip
def test_refused(text):
    with pytest.raises(ptxsim.PtxError):
        ptxsim.load(register_kernel(".reg .b16 %h;" + text, 0, 0, shared=512))
