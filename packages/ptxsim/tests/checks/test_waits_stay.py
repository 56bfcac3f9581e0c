"""A wait whose stage does not move on: nobody waits for the loads at the other elements of the ring."""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, check_kept, lines, run_rule, wait

LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
RING = Rule(
    "ring",
    lines(
        ".shared .align 8 .b64 full[2]; mov.u32 %bar, full;",
        *(f"@%lead mbarrier.init.shared.b64 [%bar+{at}], 1;" for at in (0, 8)),
        "fence.mbarrier_init.release.cluster; bar.sync 0;",
        *(
            f"@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%bar+{at}], 256;\n"
            f"@%lead {LOAD} [%sm+{at * 64}], [%in], 256, [%bar+{at}];"
            for at in (0, 8)
        ),
        wait(0),
        wait(0, 8),
    ),
    (wait(0, 8), wait(0, 0) + " // again"),
)


@pytest.mark.parametrize("order", ORDERS)
def test_a_stage_that_does_not_move_on_is_named(order):
    check_kept(RING, order)
    said = [f.message for f in run_rule(RING, RING.broken, order).findings]
    assert any(m.endswith("for full[0] 2 times: the stage does not move on") for m in said), said
