"""Tensor memory freed while another warp may read it: the hint speaks of the dealloc, not of a write."""

import pytest
from test_truth_tables_tmem import MANY
from truth import ORDERS, Rule, run_rule


@pytest.mark.parametrize("order", ORDERS)
def test_a_dealloc_that_does_not_wait_for_readers(order):
    result = run_rule(Rule("freed", MANY, threads=96), MANY.replace("bar.sync 0; // last", ""), order)
    races = [f for f in result.findings if f.kind == "race" and "dealloc" in f.message]
    assert races and {f.evidence["cause"] for f in races} == {"freed-in-use"}
    assert races[0].hint.startswith("free tensor memory after its last use")
