"""Stores that a wgmma of another warp reads with no barrier between: each wgmma waits for its four warps, so
an H200 reads what these stored before it (research/chip/wgmma_stores.cu). Whoever has waited for it also
comes after what they read before it.
"""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, lines, run_rule

FILL = "st.shared.v4.b32 [%x1], {%x4, %x4, %x4, %x4}; fence.proxy.async.shared::cta;"
BARRIER = "bar.sync 1, 128;"
PRODUCT = (
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%x4, %x4, %x4, %x4}, %y2, "
    "%p, 1, 1, 0;"
)
STORES = Rule(
    "stores",
    lines(
        "mov.b32 %x4, 0x3c003c00; shl.b32 %x1, %t, 4; add.u32 %x1, %sm, %x1;",
        "mov.b64 %y2, 4611686293305360448; cvt.u64.u32 %y3, %sm; shr.u64 %y3, %y3, 4; or.b64 %y2, %y2, %y3;",
        "setp.ne.u32 %p, %t, %t;",
        *(f"mov.f32 %f{i}, 0f00000000;" for i in range(4)),
        "setp.lt.u32 %q, %t, 64; @!%w4 bra PRODUCTS;",
        "bra END; // the other warpgroup",
        f"PRODUCTS: @%q {FILL.split(';')[0]}; fence.proxy.async.shared::cta;",
        BARRIER,
        "wgmma.fence.sync.aligned;",
        PRODUCT,
        "wgmma.commit_group.sync.aligned; // done",
        "wgmma.wait_group.sync.aligned 0; st.global.f32 [%myout], %f0;",
        "END:",
    ),
    threads=256,
    target="sm_90a",
)


def told(text: str, order) -> list[tuple[str, str, str]]:
    assert STORES.text != text
    return [(f.kind, f.severity, f.message) for f in run_rule(STORES, text, order).findings]


@pytest.mark.parametrize("order", ORDERS)
def test_with_a_barrier_it_is_clean(order):
    assert run_rule(STORES, STORES.text, order).verdict == "clean"


@pytest.mark.parametrize("order", ORDERS)
def test_without_one_the_text_is_broken(order):
    ((kind, severity, message),) = told(STORES.text.replace(BARRIER, ""), order)
    assert (kind, severity) == ("race", "review") and "an H200 reads what they stored before it" in message


@pytest.mark.parametrize("awaited", [True, False])
@pytest.mark.parametrize("order", ORDERS)
def test_copies_by_cp_async_that_their_threads_have_waited_for(awaited, order):
    copy = "cp.async.ca.shared.global [%x1], [%in], 16;" + "cp.async.wait_all;" * awaited
    text = STORES.text.replace(f"@%q {FILL.split(';')[0]};", f"@!%q bra META; {copy} META:")
    found = told(text.replace(BARRIER, ""), order)
    assert ("race", "review" if awaited else "error") in [f[:2] for f in found]


@pytest.mark.parametrize("order", ORDERS)
def test_a_store_after_the_product_is_a_race(order):
    late = f"wgmma.commit_group.sync.aligned; @%w1 {FILL.split(';')[0]};"
    found = told(STORES.text.replace("wgmma.commit_group.sync.aligned; // done", late), order)
    assert ("race", "error") in [f[:2] for f in found]


@pytest.mark.parametrize("order", ORDERS)
def test_a_store_by_another_warpgroup_is_a_race(order):
    other = f"sub.u32 %x1, %x1, 2048; {FILL} bra END;"
    found = told(STORES.text.replace("bra END; // the other warpgroup", other), order)
    assert ("race", "error") in [f[:2] for f in found]


@pytest.mark.parametrize("order", ORDERS)
def test_a_store_over_what_was_read_before_a_product(order):
    """Warp 3 reads, all multiply, and warp 0, which has waited for the product, writes."""
    read = "setp.ge.u32 %q, %t, 96; and.b32 %x5, %t, 31; shl.b32 %x5, %x5, 2; add.u32 %x5, %x5, %sm;"
    read += "@%q ld.shared.u32 %x6, [%x5+4096]; @%q st.global.u32 [%myout], %x6; wgmma.fence.sync.aligned;"
    done, write = "wgmma.wait_group.sync.aligned 0;", "@%w0 st.shared.u32 [%x5+4096], %x4;"
    fill = "st.shared.v4.b32 [%x1+4096], {%x4, %x4, %x4, %x4};"
    text = STORES.text.replace(BARRIER, fill + BARRIER).replace("wgmma.fence.sync.aligned;", read)
    ((kind, severity, message),) = told(text.replace(done, done + write), order)
    assert (kind, severity) == ("race", "review") and "which the later one has waited for" in message
    early = text.replace("wgmma.commit_group.sync", write + "wgmma.commit_group.sync")
    assert ("race", "error") in [f[:2] for f in told(early, order)]
