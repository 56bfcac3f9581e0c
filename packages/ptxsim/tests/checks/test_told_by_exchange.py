"""What one lane acquires reaches the others by an exchange: a review, as cooperative_groups relies on it."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim

HEAD = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pout) {
.reg .b64 %out, %wide; .reg .b32 %t, %w, %x, %seen, %all, %at, %lane; .reg .pred %first, %zero, %on, %one, %q;
.shared .align 4 .b32 flag; .shared .align 4 .b32 data[64];
ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x; mul.wide.u32 %wide, %t, 4; add.u64 %out, %out, %wide;
shr.u32 %w, %t, 5; setp.eq.u32 %zero, %w, 0; mov.u32 %lane, %laneid; setp.eq.u32 %first, %lane, 0;
setp.eq.u32 %one, %lane, 1; setp.eq.u32 %q, %t, 0; @%q st.shared.u32 [flag], 0; bar.sync 0; mov.u32 %all, -1;
shl.b32 %at, %lane, 2; mov.u32 %x, data; add.u32 %at, %at, %x;
@!%zero bra READER;
st.shared.u32 [%at], %t; bar.warp.sync -1; @%first atom.release.cta.shared.or.b32 %x, [flag], 1; bra END;
READER:
"""
WAITS = "AGAIN: @%first ld.acquire.cta.shared.u32 %seen, [flag];"
SHFL = "shfl.sync.idx.b32 %seen, %seen, 0, 31, MASK; setp.eq.u32 %on, %seen, 0; @%on bra AGAIN;"
ALONE = "@!%first bra READ; setp.eq.u32 %on, %seen, 0; @%on bra AGAIN; READ:"
LOAD = "ld.shared.u32 %x, [%at]; st.global.u32 [%out], %x;"
TAIL = " END: ret; }"


def severities(reader: str) -> set[tuple[str, str]]:
    out = np.zeros(64, np.uint32)
    result = ptxsim.load(HEAD + reader + TAIL).launch("k", grid=1, block=64, args=[out])
    return {(f.severity, f.evidence.get("cause")) for f in result.findings if f.kind == "race"}


@pytest.mark.parametrize("mask", ["-1", "0xffffffff", "%all"])
def test_a_whole_warp_that_exchanges_what_one_lane_saw_reads_in_order(mask):
    assert severities(WAITS + SHFL.replace("MASK", mask) + LOAD) == {("review", "by-exchange")}


@pytest.mark.parametrize("mask", ["-1", "%all"])
def test_a_barrier_of_the_warp_is_by_the_text(mask):
    assert severities(WAITS + SHFL.replace("MASK", mask) + f"bar.warp.sync {mask};" + LOAD) == set()


def test_without_an_exchange_the_others_know_nothing():
    assert {severity for severity, _ in severities(WAITS + ALONE + LOAD)} == {"error"}


def test_a_lane_that_reads_before_the_exchange_knows_nothing():
    text = WAITS + "@%one ld.shared.u32 %x, [%at];" + SHFL.replace("MASK", "-1") + LOAD
    assert "error" in {severity for severity, _ in severities(text)}


BEHIND = "ld.shared.u32 %seen, [data+128]; {} {} st.shared.u32 [data+128], %t; st.global.u32 [%out], %seen;"
VOTE = "vote.sync.any.pred %on, %one, -1;"


@pytest.mark.parametrize(("between", "guard", "told"), [
    (VOTE, "", "review"),
    ("match.any.sync.b32 %x, %t, -1;", "", "review"),
    ("", "", "error"),
    (VOTE, "@%one", "error"),  # the other lanes may load after the exchange
    ("@!%one bra NO;" + VOTE.replace("-1", "2") + "NO:", "", "error"),
])  # fmt: skip
def test_a_store_over_what_another_lane_read(between, guard, told):
    text = "bar.warp.sync -1; @%first ld.acquire.cta.shared.u32 %seen, [flag]; bar.warp.sync -1;"
    found = severities(text + BEHIND.format(between, guard))
    assert {severity for severity, _ in found} == {told} and found != {("error", "by-exchange")}
