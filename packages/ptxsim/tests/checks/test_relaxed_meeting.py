"""A barrier of the cluster with a relaxed arrival orders threads, but not their memory (PTX ISA 9.7.13.3)."""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, lines, run_rule

READ = "@%w0 ld.shared.u32 %x3, [%other]; @%w0 st.global.u32 [%myout], %x3;"


def causes(before: str, arrive: str, after: str, order) -> set:
    """Warp 1 stores before or after a barrier of the cluster, or both; warp 0 reads after it."""
    text = lines(before, f"barrier.cluster.arrive{arrive}; barrier.cluster.wait;", after)
    found = run_rule(Rule("meeting", text, cluster=2), text, order).findings
    return {f.evidence.get("cause") for f in found if f.severity == "error"}


STORE = "@!%w0 st.shared.u32 [%mine], %t;"


@pytest.mark.parametrize("order", ORDERS)
def test_what_a_relaxed_arrival_does_not_order(order):
    assert causes(STORE, ".relaxed", READ, order) == {"relaxed-meeting"}
    assert causes(STORE, "", READ, order) == set()
    assert causes(STORE + "fence.acq_rel.cluster;", ".relaxed", READ, order) == set()


@pytest.mark.parametrize("order", ORDERS)
def test_what_comes_after_it_is_not_its_fault(order):
    found = causes("", ".relaxed", STORE + READ, order)
    assert found and "relaxed-meeting" not in found


ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%bar], 32;"
FREE = "@%w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %x3, 32;"
ADDRESS = lines("ld.shared.u32 %x3, [%bar];", FREE)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("between", ["", "bar.sync 0;", "fence.acq_rel.cluster;"])
def test_the_address_that_alloc_writes(between, order):
    """alloc writes it as its thread does: no ordering of its own (9.7.16.7.1). A review: B200s run so."""
    text = lines(f"@%w0 {ALLOC}", f"{between} barrier.cluster.arrive.relaxed; barrier.cluster.wait;", ADDRESS)
    found = run_rule(Rule("alloc", text, cluster=2), text, order).findings
    races = [f.message for f in found if (f.kind, f.severity) == ("race", "review")]
    assert not [f for f in found if f.severity == "error"]
    assert bool(races) is not bool(between)
    assert all("the write by tcgen05.alloc of thread 0" in message for message in races)
