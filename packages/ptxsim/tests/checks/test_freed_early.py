"""A stage of a ring that is handed back while the tensor core still reads it."""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, check_kept, lines, run_rule

STAGES, BYTES = 3, 4096  # A is 64 x 16 and B 8 x 16, float16, without a swizzle: 2048 and 256 bytes
STAGE = (
    f"rem.u32 %x2, %x1, {STAGES}; div.u32 %x5, %x1, {STAGES}; and.b32 %x5, %x5, 1; shl.b32 %x3, %x2, 3; "
    f"mad.lo.u32 %x6, %x2, {BYTES}, %sm;"
)
WAIT = "{0}: mbarrier.try_wait.parity.shared::cta.b64 %q, [%x4], {1}; @!%q bra {0};"
ROUNDS = "add.u32 %x1, %x1, 1; setp.lt.u32 %p, %x1, 8; @%p bra"
FULL, FREE = (f"mov.u32 %x4, {array}; add.u32 %x4, %x4, %x3;" for array in ("full", "free"))
DESCRIPTORS = (
    "shr.u32 %x7, %x6, 4; cvt.u64.u32 %y1, %x7; or.b64 %y1, %y1, 0x1000080000; add.u64 %y2, %y1, 128;"
)
MMA = (
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %y1, %y2, %p, 1, 1, 0, 0; "
    "wgmma.commit_group.sync.aligned;"
)
DONE = "wgmma.wait_group.sync.aligned 0;"
HAND_BACK = f"{FREE} mbarrier.arrive.shared::cta.b64 _, [%x4];"
TEXT = lines(
    ".shared .align 8 .b64 full[3]; .shared .align 8 .b64 free[3];",
    *(f"@%lead mbarrier.init.shared::cta.b64 [full+{8 * i}], 1;" for i in range(STAGES)),
    *(f"@%lead mbarrier.init.shared::cta.b64 [free+{8 * i}], 128;" for i in range(STAGES)),
    "fence.proxy.async.shared::cta; bar.sync 0; mov.u32 %x1, 0; mov.f32 %f0, 0f00000000;",
    "mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; @!%w4 bra EMPTY;",
    "setp.ne.u32 %p, %t, 128; @%p bra END;",
    f"FILL: {STAGE} xor.b32 %x7, %x5, 1; {FREE}",
    WAIT.format("ROOM", "%x7"),
    f"{FULL} mbarrier.arrive.expect_tx.shared::cta.b64 _, [%x4], {BYTES};",
    f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%x6], [%in], {BYTES}, [%x4];",
    f"{ROUNDS} FILL; bra END;",
    f"EMPTY: {STAGE} {FULL}",
    WAIT.format("DATA", "%x5"),
    f"{DESCRIPTORS} setp.ne.u32 %p, %t, 1000; wgmma.fence.sync.aligned;",
    MMA,
    f"{DONE} {HAND_BACK}",
    f"{ROUNDS} EMPTY;",
    "END:",
)
RULE = Rule("ring", TEXT, threads=160, target="sm_90a")


def test_a_stage_handed_back_after_the_product():
    check_kept(RULE, "program")


@pytest.mark.parametrize("order", ORDERS)
def test_a_stage_handed_back_before_the_product_is_done(order):
    """Not the element of the next stage, which the same warps signal later, after they have waited."""
    broken = TEXT.replace(f"{DONE} {HAND_BACK}", f"{HAND_BACK} {DONE}")
    assert broken != TEXT
    first = run_rule(RULE, broken, order).findings[0]
    assert (first.kind, first.evidence["cause"]) == ("race", "early"), first
    assert "before the read by tensor core (wgmma) was done" in first.message
