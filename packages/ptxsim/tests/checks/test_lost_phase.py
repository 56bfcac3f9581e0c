"""Warps that a wgmma waits for, and that wait for a phase which is long over: the lost phase is the cause."""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, lines, run_rule, wait

PRODUCT = (
    "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, "
    "{%x4, %x4, %x4, %x4}, %y2, %p, 1, 1, 0; wgmma.commit_group.sync.aligned; "
    "wgmma.wait_group.sync.aligned 0;"
)
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%bar];"
LATE = f"@!%w0 bra LATE; {wait(0)} @%lead mbarrier.arrive.shared::cta.b64 _, [%bar+8]; bra PRODUCT;"


START = (
    "setp.ne.u32 %p, %t, %t; mov.u32 %x4, 0; mov.b64 %y2, 4611686293305360448;",
    *(f"mov.f32 %f{i}, 0f00000000;" for i in range(4)),
)


def deadlock_of(name: str, text: str, order):
    rule = Rule(name, text, threads=160, target="sm_90a")
    (found,) = [f for f in run_rule(rule, text, order).findings if f.kind == "deadlock"]
    return found


def deadlock(late: str, order) -> str:
    """Warp 4 completes two phases, the second when warp 0 has seen the first; then warps 1 to 3 may go on."""
    text = lines(
        *(f"@%lead mbarrier.init.shared::cta.b64 [%bar+{at}], 1;" for at in (0, 8, 16, 24)),
        *START,
        "bar.sync 0; setp.eq.u32 %q, %t, 128; @%q bra SIGNALS; @%w4 bra END;",
        LATE,
        f"LATE: {late}",
        f"PRODUCT: {PRODUCT} bra END;",
        f"SIGNALS: {ARRIVE} {wait(0, 8)} {ARRIVE} mbarrier.arrive.shared::cta.b64 _, [%bar+16];",
        "END:",
    )
    return deadlock_of("lost-phase", text, order).message


@pytest.mark.parametrize("order", ORDERS)
def test_the_phase_that_was_lost_is_the_cause(order):
    message = deadlock(f"{wait(0, 16)} {wait(0)}", order)
    assert "warps 1-3 wait for phase 0 of buffer + 8192 B, which is already in phase 2" in message


@pytest.mark.parametrize("order", ORDERS)
def test_warps_that_skip_the_product_are_the_cause(order):
    """Unless they would come to it, but for a barrier that nobody signals."""
    assert "that warps 1-3 never issue" in deadlock("bra END;", order).replace("WG0 ", "")
    assert "nobody signals buffer + 8216 B: warps 1-3 wait" in deadlock(wait(0, 24), order)


LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%sm], [%in], 16, [%bar];"


@pytest.mark.parametrize("order", ORDERS)
def test_a_warp_that_has_passed_a_fresh_barrier_is_the_cause(order):
    """The load begins when warp 0 has passed its wait; warps 1 to 3 come to that wait when it has ended."""
    text = lines(
        *(f"@%lead mbarrier.init.shared::cta.b64 [%bar+{at}], 1;" for at in (0, 8, 16)),
        "@%lead fence.mbarrier_init.release.cluster;",
        *START,
        "bar.sync 0; setp.eq.u32 %q, %t, 128; @%q bra LOADS; @%w4 bra END;",
        f"@%w0 bra DATA; {wait(0, 8)}",
        f"DATA: {wait(1)} @%lead mbarrier.arrive.shared::cta.b64 _, [%bar+16];",
        f"{PRODUCT} bra END;",
        f"LOADS: {wait(0, 16)} mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16; {LOAD}",
        f"{wait(0)} mbarrier.arrive.shared::cta.b64 _, [%bar+8];",
        "END:",
    )
    found = deadlock_of("fresh-in-group", text, order)
    assert found.evidence["cause"] == "fresh-wait" and "warp 0 waited for the wrong" in found.message


@pytest.mark.parametrize("order", ORDERS)
def test_a_barrier_that_was_over_without_a_warp_is_the_cause(order):
    """Warp 2 waits for what warps 0 and 1 should hand back, but init counts one of them."""
    back = "mbarrier.arrive.shared::cta.b64 _, [%bar+8];"
    text = lines(
        *(f"@%lead mbarrier.init.shared::cta.b64 [%bar+{at}], 1;" for at in (0, 8, 16)),
        "bar.sync 0; and.b32 %r1, %t, 31; setp.ne.u32 %q, %r1, 0; @%q bra MEET;",
        "setp.eq.u32 %q, %t, 64; @%q bra GIVES; @%w1 bra LATE;",
        f"{wait(0)} {back} {wait(1)} {back} mbarrier.arrive.shared::cta.b64 _, [%bar+16]; bra MEET;",
        f"LATE: {wait(0, 16)} {wait(0)} {back} bra MEET;",
        f"GIVES: {ARRIVE} {wait(0, 8)} {ARRIVE} {wait(1, 8)} {wait(0, 8)}",
        "MEET: bar.sync 0;",
    )
    found = run_rule(rule := Rule("over", text, threads=96), rule.text, order).findings[0]
    assert found.evidence["cause"] == "over-without", found
    assert "was over without warp 1 lane 0" in found.message, found
