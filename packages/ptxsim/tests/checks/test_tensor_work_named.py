"""Findings about tensor memory name the instruction: a dealloc is no write, and a tcgen05.cp is no MMA."""

import pytest
from test_truth_tables_tmem import COPY, MANY, MMA, PRODUCT
from truth import ORDERS, Rule, check_broken, check_kept, each, run_rule, wait


@pytest.mark.parametrize("order", ORDERS)
def test_a_dealloc_that_does_not_wait_for_readers(order):
    result = run_rule(Rule("freed", MANY, threads=96), MANY.replace("bar.sync 0; // last", ""), order)
    races = [f for f in result.findings if f.kind == "race" and "dealloc" in f.message]
    assert races and {f.evidence["cause"] for f in races} == {"freed-in-use"}
    assert races[0].hint.startswith("free tensor memory after its last use")


COPIED = Rule(
    "copied-to-tensor-memory",
    PRODUCT.replace(MMA, COPY),
    (wait(0), ""),
    "race",
    words="this tcgen05.cp (PTX line 26) is issued with no wait for buffer + 8192 B before it",
    also=("async-pending",),
    threads=128,
)


@each([COPIED])
def test_a_copy_to_tensor_memory_that_waits_for_nothing(rule, order):
    check_kept(rule, order)
    check_broken(rule, order)
