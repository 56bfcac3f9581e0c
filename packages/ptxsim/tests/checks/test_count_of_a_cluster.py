"""A count that is too high, in a cluster: arrivals on the other CTA's barrier are not the missing ones."""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, lines, run_rule, wait

HOME = "mbarrier.arrive.shared::cta.b64 _, [%bar];"
ARRIVE = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%peer];"
BOTH = f"mapa.shared::cluster.u32 %peer, %bar, {{}}; {ARRIVE}"


def told(count: int, arrive: str, order) -> list[str]:
    """In each CTA thread 0 waits, twice; warp 1's first thread arrives and waits for an answer between."""
    text = lines(
        f"@%lead mbarrier.init.shared::cta.b64 [%bar], {count};",
        "@%lead mbarrier.init.shared::cta.b64 [%bar+8], 1; @%lead fence.mbarrier_init.release.cluster;",
        "barrier.cluster.arrive; barrier.cluster.wait; setp.eq.u32 %q, %t, 32; @%q bra SIGNALS;",
        f"@!%lead bra END; {wait(0)} {HOME.replace('[%bar]', '[%bar+8]')} {wait(1)} bra END;",
        f"SIGNALS: {arrive} {wait(0, 8)} {arrive}",
        "END: barrier.cluster.arrive; barrier.cluster.wait;",
    )
    found = run_rule(Rule("count", text, cluster=2), text, order).findings
    return [f.message for f in found if f.kind == "deadlock"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("arrive, right", [(HOME, 1), (BOTH.format(0) + BOTH.format(1), 2)])
def test_only_the_count_is_named(arrive, right, order):
    assert not told(right, arrive, order)
    (message,) = told(2 * right, arrive, order)
    assert f"only {right} of {2 * right} arrivals came" in message and "others went to" not in message


LOAD = (
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
    "[%sm], [%in], 16, [%bar], 3;"
)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rank, count", [("0", 2), ("%rank", 1)])
def test_readers_that_only_their_own_cta_asks(rank, count, order):
    """CTA 0 loads into both, twice; with %rank the reader of CTA 1 arrives on a barrier of its own."""
    read = "ld.shared.u32 %x3, [%sm];"
    back = f"mapa.shared::cluster.u32 %peer, %bar, {rank}; {ARRIVE.replace('[%peer]', '[%peer+8]')}"
    expect = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;"
    text = lines(
        f"@%lead mbarrier.init.shared::cta.b64 [%bar+8], {count};",
        "@%lead mbarrier.init.shared::cta.b64 [%bar], 1;",
        "@%lead fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait;",
        "setp.eq.u32 %q, %t, 32; @%q bra LOADS; @!%lead bra END;",
        f"{expect} {wait(0)} {read} {back} {expect} {wait(1)} {read} bra END;",
        f"LOADS: setp.ne.u32 %q, %rank, 0; @%q bra END; {LOAD} {wait(0, 8)} {LOAD}",
        "END: barrier.cluster.arrive; barrier.cluster.wait;",
    )
    found = run_rule(Rule("readers", text, cluster=2, target="sm_90a"), text, order).findings
    causes = {f.evidence.get("cause") for f in found if f.kind == "race"}
    told = "peers-unasked" in causes and causes <= {"own-arrival", "peers-unasked"}
    assert told if count == 1 else not causes, [str(f) for f in found]
