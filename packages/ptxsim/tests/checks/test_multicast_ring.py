"""Two CTAs that each multicast half of a buffer to both, round after round: each fault is told as itself."""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, check_kept, lines, run_rule

ASK = "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q,"
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
ALL = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%x5];"
RING = Rule(
    "multicast ring",
    lines(
        "@%lead mbarrier.init.shared::cta.b64 [%bar], 1; @%lead mbarrier.init.shared::cta.b64 [%bar+8], 2;",
        f"fence.mbarrier_init.release.cluster; {MEET} .reg .b16 %rs; mov.b16 %rs, 3; mov.u32 %x1, 0;",
        "shl.b32 %x4, %rank, 7; add.u32 %x4, %sm, %x4; add.u32 %x6, %bar, 8; and.b32 %x7, %t, 31;",
        "mov.u32 %x2, 0;",
        "@!%w1 bra LOAD; bra READER; LOAD: @!%lead bra END;",
        f"FILL: xor.b32 %x3, %x2, 1; FREE: {ASK} [%bar+8], %x3; @!%q bra FREE;",
        f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 256; {LOAD} [%x4], [%in], 128, [%bar], %rs;",
        "xor.b32 %x2, %x2, 1; add.u32 %x1, %x1, 1; setp.lt.u32 %p, %x1, 4; @%p bra FILL; bra END;",
        f"READER: READ: FULL: {ASK} [%bar], %x2; @!%q bra FULL; ld.shared.u32 %r1, [%mine-128];",
        "bar.warp.sync -1; // read",
        "setp.ne.u32 %q, %x7, 0; @%q bra NEXT;",
        *(f"mapa.shared::cluster.u32 %x5, %x6, {rank}; {ALL}" for rank in (0, 1)),
        "NEXT: xor.b32 %x2, %x2, 1; add.u32 %x1, %x1, 1; setp.lt.u32 %p, %x1, 4; @%p bra READ;",
        f"END: {MEET}",
    ),
    cluster=2,
)
TWINS = {
    "to one CTA": ("mov.b16 %rs, 3;", "mov.b16 %rs, 1;", "bytes-announced"),
    "a reader that starts with parity 1": ("READ: FULL", "mov.u32 %x2, 1; READ: FULL", "fresh"),
    "one lane arrives for its warp": ("bar.warp.sync -1; // read", "", "arrives-alone"),
}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
def test_it_is_clean(order):
    check_kept(RING, order)


@pytest.mark.parametrize("twin", TWINS)
def test_each_fault_is_told_as_itself(twin):
    old, new, cause = TWINS[twin]
    assert RING.text.count(old) == 1
    first = run_rule(RING, RING.text.replace(old, new), "program").findings[0]
    assert (first.severity, first.evidence["cause"]) == ("error", cause), first
