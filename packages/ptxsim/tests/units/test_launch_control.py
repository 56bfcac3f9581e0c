"""clusterlaunchcontrol (PTX ISA 9.7.13.17): every cluster's work is done once, whoever takes it over."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import ptxsim
from ptxsim.grid import processes
from ptxsim.grid.repeats.runner import Runner

TX = "mbarrier::complete_tx::bytes"
KERNEL = """
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 done, .param .u64 by)
{{
    .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .b128 %q; .reg .pred %p<6>;
    .shared .align 16 .b8 answer[16];
    .shared .align 8 .b64 bar;
    ld.param.u64 %d1, [done];
    ld.param.u64 %d2, [by];
    mov.u32 %r1, answer;
    mov.u32 %r2, bar;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, 0;
    mov.u32 %r10, %cluster_ctarank;
    setp.ne.u32 %p1, %r10, 0;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
WORK:
    mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [%r2], 16;
    {ask}
    mul.wide.u32 %d3, %r3, 4;
    add.s64 %d4, %d1, %d3;
    ld.global.u32 %r5, [%d4];
    add.u32 %r5, %r5, 1;
    st.global.u32 [%d4], %r5;
    mov.u32 %r6, %ctaid.x;
    add.s64 %d5, %d2, %d3;
    st.global.u32 [%d5], %r6;
AGAIN:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], %r4;
    @!%p2 bra AGAIN;
    xor.b32 %r4, %r4, 1;
    ld.shared.b128 %q, [%r1];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q;
    {guard} clusterlaunchcontrol.query_cancel.{first} %q;
    add.u32 %r3, %r3, %r10;
    fence.proxy.async.shared::cta;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    @%p3 bra WORK;
    {late}
    ret;
}}
"""
ASK = (
    f"@!%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.{TX}.multicast::cluster::all.b128 [%r1], [%r2];"
)
FIRST = "get_first_ctaid::x.b32.b128 %r3,"


def run(order, clusters=12, size=2, guard="@%p3", first=FIRST, ask=ASK, late=""):
    done, by = np.zeros(clusters * size, np.uint32), np.zeros(clusters * size, np.uint32)
    text = KERNEL.format(guard=guard, first=first, ask=ask, late=late)
    result = ptxsim.load(text).launch(
        "k", grid=clusters * size, block=1, cluster=size, args=[done, by], order=order, jobs=1
    )
    return done, by, result


@pytest.mark.parametrize("order", ["program", "adverse", *range(6)])
@pytest.mark.parametrize("size", [1, 2])
def test_each_cluster_is_done_once(order, size):
    ask = ASK if size > 1 else ASK.replace(".multicast::cluster::all", "")
    done, by, result = run(order, size=size, ask=ask)
    assert (done == 1).all() and result.verdict == "clean"
    others = (by != np.arange(len(by))).sum() // size
    assert others == {"program": 6, "adverse": 11}.get(order, others) and others > 0


def test_one_cluster_has_nothing_to_take():
    done, _, result = run("adverse", clusters=1)
    assert (done == 1).all() and result.verdict == "clean"


def test_the_vector_form():
    done, _, result = run("adverse", first="get_first_ctaid.v4.b32.b128 {%r3, %r11, %r12, _},")
    assert (done == 1).all() and result.verdict == "clean"


@pytest.mark.parametrize(
    "change, words",
    [
        ({"guard": ""}, "get_first_ctaid of a request that failed"),
        ({"late": ASK}, "after this CTA has seen a request fail"),
        ({"ask": ASK.replace("[%r1]", "[%r1+8]")}, "not 16-byte aligned"),
    ],
)
def test_rules(change, words):
    assert run("program")[2].verdict == "clean"
    late = change.get("late")
    if late:  # its answer is awaited, so that only the rule is broken
        wait = "TAIL: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], %r4; @!%p2 bra TAIL;"
        expect = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;"
        change = {"late": f"{expect} {late} {wait}"}
    found = run("program", **change)[2].findings
    assert any(words in f.message for f in found)


def test_an_answer_that_never_came():
    """The threads themselves announce the bytes to the barrier: nobody has written an answer."""
    ask = "mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%r2], 16;"
    found = run("program", ask=ask)[2].findings
    assert any("not an answer of try_cancel" in f.message for f in found)


READS = """ld.global.u32 %r5, [%d4];
    add.u32 %r5, %r5, 1;
    st.global.u32 [%d4], %r5;"""


@pytest.mark.parametrize("clusters, ends", [(12, [True] * 5), (9, [True] * 2), (13, [True] * 3 + [False])])
def test_clusters_that_take_others_are_compared(clusters, ends, monkeypatch):
    """They do not read what they write. Of 13 clusters the last one finds none to take over."""
    monkeypatch.setattr(sys.modules[__name__], "KERNEL", KERNEL.replace(READS, "st.global.u32 [%d4], 1;"))
    seen, repeats = [], Runner._repeats
    monkeypatch.setattr(Runner, "_repeats", lambda *a: [seen.append(repeats(*a)), seen[-1]][1])
    done, by, result = run("program", clusters)
    assert seen == ends
    monkeypatch.setattr(processes, "WORTH_COMPARING", 10**9)
    all_done, all_by, checked = run("program", clusters)
    assert (done == 1).all() and (done == all_done).all() and (by == all_by).all()
    assert result.stats | {"seconds": 0} == checked.stats | {"seconds": 0} and result.verdict == "clean"
