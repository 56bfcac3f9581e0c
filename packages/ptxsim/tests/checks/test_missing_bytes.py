"""Bytes that never come are said to be missing, though copies to a barrier beside it would follow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from truth import ORDERS, Rule, check_kept, lines, run_rule, wait


def copy(at: int) -> str:
    fetch = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    return f"@%lead {fetch} [%sm+{16 * at}], [%in], 16, [%bar+{at}];"


RULE = Rule(
    "bytes",
    lines(
        "@%lead mbarrier.init.shared::cta.b64 [%bar], 1;",
        "@%lead mbarrier.init.shared::cta.b64 [%bar+8], 1;",
        "fence.mbarrier_init.release.cluster; bar.sync 0;",
        "@!%lead bra END; mov.u32 %x2, 0;",
        "@%lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;",
        copy(0),
        "ROUND:",
        "@%lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar+8], 16;",
        copy(8),
        wait("%x2", 8),
        wait(0),
        "add.u32 %x2, %x2, 1; setp.lt.u32 %p, %x2, 2; @%p bra ROUND;",
        "END:",
    ),
    (copy(0), ""),
)


@pytest.mark.parametrize("order", ORDERS)
def test_both_copies_are_clean(order):
    check_kept(RULE, order)


@pytest.mark.parametrize("order", ORDERS)
def test_the_missing_copy_is_told_by_its_bytes(order):
    result = run_rule(RULE, replace(RULE).broken, order)
    causes = {f.evidence.get("cause") for f in result.findings}
    assert causes & {"bytes", "bytes-announced"} and not causes & {"self-wait", "ring"}
    assert any("16 B" in f.message for f in result.findings)
