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
