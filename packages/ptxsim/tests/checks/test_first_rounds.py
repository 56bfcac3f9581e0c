"""Rounds without a wait: only the first one, or all but the last wait."""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, lines, run_rule, wait

ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%bar{}];"


def causes(*signals: str, order) -> set[str]:
    """Thread 32 signals four rounds to thread 0, which answers each."""
    text = lines(
        "@%lead mbarrier.init.shared::cta.b64 [%bar], 1; @%lead mbarrier.init.shared::cta.b64 [%bar+8], 1;",
        "bar.sync 0; setp.eq.u32 %q, %t, 32; @%q bra SIGNALS; @!%lead bra END;",
        *(f"{wait(n & 1)} {ARRIVE.format('+8')}" for n in range(4)),
        "bra END; SIGNALS:",
        *signals,
        "END:",
    )
    found = run_rule(Rule("rounds", text), text, order).findings
    return {f.evidence.get("cause") for f in found if f.severity == "error"}


FULL = ARRIVE.format("")


@pytest.mark.parametrize("order", ORDERS)
def test_a_first_round_without_a_wait_and_a_second_that_passes_at_once(order):
    rounds = (FULL, *(wait(n & 1, 8) + FULL for n in (1, 0, 1)))
    assert causes(*rounds, order=order) == {"fresh-late"}


@pytest.mark.parametrize("order", ORDERS)
def test_rounds_without_a_wait_are_not_told_as_a_first_round(order):
    again = "add.u32 %x2, %x2, 1; setp.lt.u32 %p, %x2, 4; @%p bra ROUND;"
    found = causes("mov.u32 %x2, 0;", f"ROUND: {FULL} {again}", wait(1, 8), order=order)
    assert found and "fresh-late" not in found, found


@pytest.mark.parametrize("address", ["mov.u32 %x4, %bar;", "xor.b32 %x4, %bar, 0;"])
def test_a_read_after_a_wait_that_passed_at_once(address):
    """Whether the text gives the place of the barrier or not."""
    load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%sm], [%in], 16, [%x4];"
    text = lines(
        "@%lead mbarrier.init.shared::cta.b64 [%bar], 1; @%lead fence.mbarrier_init.release.cluster;",
        f"bar.sync 0; @!%lead bra END; {address}",
        f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16; {load}",
        f"{wait(1)} ld.shared.u32 %x5, [%sm+1024]; st.global.u32 [%out], %x5; {wait(0)}",
        "END:",
    )
    found = run_rule(Rule("passed-at-once", text), text, "adverse").findings
    assert [f.evidence.get("cause") for f in found if f.kind == "uninitialized"] == ["fresh-read"], found
