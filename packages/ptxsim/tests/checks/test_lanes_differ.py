"""Lanes of a warp that store to one word in one instruction, and threads that change one word in turn."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim

HEAD = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pout) {
.reg .b64 %out, %mine; .reg .b32 %t, %at, %x, %y; .reg .pred %p, %q; .shared .align 16 .b8 data[4096];
ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x; mul.wide.u32 %mine, %t, 4; add.u64 %mine, %mine, %out;
and.b32 %at, %t, 3; shl.b32 %at, %at, 2; mov.u32 %y, data; add.u32 %at, %at, %y; setp.lt.u32 %p, %t, 16;
.loc 1 5 0
"""
STORE, READ = "st.shared.u32 [%at], %t;", ".loc 1 6 0\nbar.sync 0; ld.shared.u32 %x, [%at];"
RESULT = "st.global.u32 [%mine], %x;"
ELECTS = "setp.eq.u32 %q, %x, %t; selp.u32 %x, 1, 0, %q;"
HALVES = "@!%p bra B; {0} bra C; B: {0} C: bar.warp.sync -1;"


def findings(body: str, block: int = 32) -> list[tuple[str, str]]:
    text = f'{HEAD}{body} ret; }}\n.file 1 "lanes.cu"\n'
    result = ptxsim.load(text).launch("k", block=block, args=[np.zeros(1024, np.uint32)])
    return [(f.severity, f.evidence.get("cause")) for f in result.findings]


@pytest.mark.parametrize(("body", "severity"), [
    (STORE + READ + RESULT, "error"),
    (STORE + READ + ELECTS + RESULT, "review"),
    (STORE + READ + "@%p " + RESULT, "error"),
    (STORE, "review"),
    ("st.global.u32 [%out], %t;", "review"),
    ("@%p " + STORE + READ + RESULT, "error"),  # not all lanes
    ("and.b32 %x, %t, 4; shr.u32 %x, %x, 2;" + STORE.replace("%t", "%x") + READ + RESULT, "error"),
    ("st.shared.v2.u32 [data], {7, %t};" + READ + RESULT, "error"),
    ("cvt.u16.u32 %h0, %t; st.shared.u16 [data], %h0;" + READ + RESULT, "error"),
    ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%y], {%t};" + READ + RESULT, "error"),
])  # fmt: skip
def test_lanes_that_store_different_values(body, severity):
    body = ".reg .b16 %h0; st.shared.u32 [%at], 0; bar.sync 0;" + body
    assert findings(body) == [(severity, "lanes-differ")]


@pytest.mark.parametrize("value", ["%at", "7"])
def test_lanes_that_store_one_value(value):
    assert findings(STORE.replace("%t", value) + READ + RESULT) == []


def test_values_that_nobody_reads_before_the_next_store():
    assert ("error", "lanes-differ") not in findings(
        STORE + "bar.sync 0; st.shared.u32 [%at], 1;" + READ + RESULT
    )


def test_only_the_low_bytes_are_stored():
    body = ".reg .b16 %h; shl.b32 %x, %t, 8; or.b32 %x, %x, 7; cvt.u16.u32 %h, %x; st.shared.u8 [data], %h;"
    assert (
        findings(body + "bar.sync 0; .reg .b16 %l; ld.shared.u8 %l, [data]; st.global.u8 [%mine], %l;") == []
    )


def test_what_a_copy_reads_is_read():
    copy = (
        "fence.proxy.async; bar.sync 0; @%q cp.async.bulk.global.shared::cta.bulk_group [%out], [data], 16;"
    )
    body = (
        STORE
        + "setp.eq.u32 %q, %t, 0;"
        + copy
        + "@%q cp.async.bulk.commit_group; @%q cp.async.bulk.wait_group 0;"
    )
    assert ("error", "lanes-differ") in findings(body)


def test_lanes_that_store_in_different_rounds_are_not_one_instruction():
    loop = (
        f"mov.u32 %x, 0; L: {STORE} add.u32 %at, %at, 4; add.u32 %x, %x, 1; setp.lt.u32 %q, %x, 4; @%q bra L;"
    )
    body = "shl.b32 %at, %t, 2; add.u32 %at, %at, %y;" + loop
    assert {severity for severity, _ in findings(body)} == {"review"}
    meet = loop.replace("add.u32 %at", "bar.warp.sync -1; add.u32 %at")
    assert findings(body.replace(loop, meet)) == []


@pytest.mark.parametrize("block", [32, 64])
@pytest.mark.parametrize(("space", "place"), [("shared", "%at"), ("global", "%out")])
def test_threads_that_change_a_word_need_an_atomic(block, space, place):
    load, store = f"ld.{space}.u32 %x, [{place}];", f"st.{space}.u32 [{place}], %x;"
    body = f"st.shared.u32 [%at], 0; bar.sync 0; .loc 1 7 0\n {load} add.u32 %x, %x, 1; {store}"
    assert findings(body, block) == [("error", "one-word")]


def test_a_reduction_without_barrier_needs_the_barrier():
    body = """.reg .b32 %o; shl.b32 %at, %t, 2; add.u32 %at, %at, %y; st.shared.u32 [%at], %t; bar.sync 0;
    .loc 1 7 0
    ld.shared.u32 %x, [%at]; ld.shared.u32 %o, [%at+4]; add.u32 %x, %x, %o; @%p st.shared.u32 [%at], %x;"""
    causes = {cause for _, cause in findings(body, 64)}
    assert causes and "one-word" not in causes


@pytest.mark.parametrize("between", ["redux.sync.add.u32 %x, %x, -1;", "add.u32 %x, %x, 1; bar.sync 0;"])
def test_a_word_that_all_have_read_before_any_changes_it_loses_nothing(between):
    """Triton stores sums so, as each of several threads holds a copy."""
    body = f"st.shared.u32 [data], 1; bar.sync 0; .loc 1 7 0\n ld.shared.u32 %x, [data]; {between}"
    found = findings(body + "st.shared.u32 [data], %x;" + READ + RESULT)
    assert not [cause for severity, cause in found if severity == "error"], found


ADDS = "ld.shared.u32 %x, [%at]; .loc 1 8 0\n add.u32 %x, %x, %t; .loc 1 9 0\n st.shared.u32 [%at], %x;"


@pytest.mark.parametrize(("stores", "severity"), [
    (STORE, "review"),
    ("mov.u32 %at, data; setp.eq.u32 %q, %x, %y; @%q bra B;" + STORE + "B:", "review"),
    (ADDS, "error"),
])  # fmt: skip
def test_where_data_decide_which_lanes_meet_any_of_them_may_do(stores, severity):
    """As in hashing; but what a lane adds to a word that others add to as well is lost."""
    data = "st.shared.u32 [%at], %at; bar.sync 0; ld.shared.u32 %x, [%at]; mov.u32 %at, %x; bar.sync 0;"
    found = findings(f"{data} {stores} {READ}{RESULT}")
    assert (severity, "lanes-differ") in found and ("error" in dict(found)) == (severity == "error"), found
