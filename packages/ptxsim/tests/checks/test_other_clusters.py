"""What a flag or counter in global memory tells one CTA of another: by thread, by scope, and how far."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim

KERNEL = """.visible .entry k(.param .u64 p) {{
  .reg .b64 %p, %mine; .reg .b32 %x, %t, %c; .reg .pred %rest, %none;
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mul.wide.u32 %mine, %t, 4;
  add.u64 %mine, %mine, %p; setp.ne.u32 %rest, %t, 0; setp.ne.u32 %none, %c, 0; @%none bra LATER;
  {gives}
  ret;
LATER:
  {takes}
  ld.global.u32 %x, [%mine+64]; st.global.u32 [%mine+1024], %x;
  ret;
}}"""
WRITE, BARRIER = "st.global.u32 [%mine+64], %t;", "bar.sync 0;"
FENCE, NEAR = "fence.acq_rel.gpu;", "fence.acq_rel.cta;"
FLAG, NEAR_FLAG = "@!%rest st.release.gpu.global.u32 [%p], 1;", "@!%rest st.release.cta.global.u32 [%p], 1;"
COUNT = "@!%rest red.relaxed.gpu.global.add.u32 [%p], 1;"
ASK, NEAR_ASK, LOOK = (
    f"POLL: ld.{how}.global.u32 %x, [%p]; setp.eq.u32 %none, %x, 0; @%none bra POLL;"
    for how in ("acquire.gpu", "acquire.cta", "relaxed.gpu")
)
ONE_ASKS, ONE_LOOKS = f"@%rest bra MEET; {ASK} MEET:", f"@%rest bra MEET; {LOOK} MEET:"
GIVES = WRITE + BARRIER + FLAG
INCOMPLETE = "what it releases does not include this write"
ALONE = "thread 0 of a CTA signals there for all its threads, with no barrier of the CTA after their write"
ONLY_NEAR = "or only at the scope of a CTA or cluster"


def _result(gives: str, takes: str):
    memory = np.zeros(512, np.uint32)
    text = HEAD + KERNEL.format(gives=gives, takes=takes)
    return ptxsim.load(text).launch("k", grid=2, block=64, args=[memory])


@pytest.mark.parametrize(
    "gives, takes, wrong",
    [
        (GIVES, ASK, ""),
        (GIVES, ONE_ASKS + BARRIER, ""),
        (WRITE + BARRIER + FENCE + COUNT, LOOK + FENCE, ""),
        (WRITE + FENCE + BARRIER + FENCE + COUNT, LOOK + FENCE, ""),
        (FLAG + BARRIER + WRITE, ASK, INCOMPLETE),
        (WRITE + FLAG, ASK, ALONE),
        (WRITE + FLAG, f"{ASK} st.global.u32 [%mine+64], %c;", ALONE),
        (GIVES + BARRIER + WRITE, ASK, INCOMPLETE),
        (FENCE + WRITE + BARRIER + COUNT, LOOK + FENCE, INCOMPLETE),
        (WRITE + BARRIER + NEAR + COUNT, LOOK + FENCE, "nothing releases the write before it, " + ONLY_NEAR),
        (WRITE + BARRIER + NEAR_FLAG, ASK, "nothing releases the write before it, " + ONLY_NEAR),
        (GIVES, LOOK, "nothing acquires after it"),
        (GIVES, LOOK + NEAR, "nothing acquires after it, " + ONLY_NEAR),
        (GIVES, NEAR_ASK, "nothing acquires after it, " + ONLY_NEAR),
        (GIVES, FENCE + LOOK, "nothing acquires after it"),
        (GIVES, ONE_ASKS, "thread 0 acquires, but no barrier after that hands it on to thread 1"),
    ],
)
def test_a_flag_hands_on_what_its_thread_knows(gives, takes, wrong):
    """Only that, only between fences or accesses whose scope includes both CTAs, and to those who come
    after the acquire.
    """
    result = _result(gives, takes)
    assert result.verdict == ("error" if wrong else "clean"), result.findings
    assert not wrong or any(wrong in finding.message for finding in result.findings), result.findings


SC, LEADERS = "membar.gl;", "setp.lt.u32 %none, %t, 0; and.b32 %x, %t, 31; setp.ne.u32 %none, %x, 0;"
BY_LEADER = f"{WRITE} bar.warp.sync -1; {LEADERS} @!%none fence.sc.gpu; {BARRIER} {COUNT}"


@pytest.mark.parametrize(
    "gives, takes, wrong",
    [
        (WRITE + SC + BARRIER + COUNT, LOOK + SC, ""),
        (WRITE + SC + BARRIER + COUNT, ONE_LOOKS + f"{BARRIER} {SC}", ""),
        (WRITE + BARRIER + SC + COUNT, ONE_LOOKS + f"{BARRIER} fence.sc.gpu;", ""),
        (BY_LEADER, LOOK + SC, ""),
        (WRITE + "fence.sc.cta;" + BARRIER + COUNT, LOOK + SC, "nothing releases the write"),
        (WRITE + FENCE + BARRIER + COUNT, LOOK + SC, "between, whose own fence counts only as fence.sc"),
        (WRITE + SC + COUNT, LOOK + SC, ALONE),
        (SC + WRITE + BARRIER + COUNT, LOOK + SC, INCOMPLETE),
        (WRITE + SC + BARRIER + COUNT, ONE_LOOKS + f"{BARRIER} {FENCE}", "thread 0"),
        (WRITE + SC + BARRIER + COUNT, SC + ONE_LOOKS + BARRIER, "nothing acquires after it"),
    ],
)
def test_sc_fences_of_other_threads_count(gives, takes, wrong):
    """`__threadfence()` by all threads, a barrier, and a counter by one of them: the Fence-SC order has the
    fences in the order of the write and the read of the counter (8.9). Fences .acq_rel have no such order.
    """
    result = _result(gives, takes)
    assert result.verdict == ("error" if wrong else "clean"), result.findings
    assert not wrong or any(wrong in finding.message for finding in result.findings), result.findings


TICKETS = """.visible .entry k(.param .u64 p) {{
  .reg .b64 %p; .reg .b32 %x; .reg .pred %other;
  ld.param.u64 %p, [p]; mov.u32 %x, %tid.x; {takes}
  setp.ne.u32 %other, %x, {which}; @%other bra END; st.global.u32 [%p], 0;
END: ret;
}}"""


@pytest.mark.parametrize(
    "takes, which, verdict",
    [
        ("atom.relaxed.gpu.global.add.u32 %x, [%p], 1;", 127, "clean"),
        ("atom.relaxed.gpu.global.add.u32 %x, [%p], 1;", 5, "error"),
        ("atom.relaxed.cta.global.add.u32 %x, [%p], 1;", 127, "error"),
        ("red.relaxed.gpu.global.add.u32 [%p], 1;", 63, "error"),
    ],
)
def test_the_last_ticket_has_observed_all_others(takes, which, verdict):
    """An atomic comes after those whose results it continues (8.9.2), whatever it acquires: the thread with
    the last ticket may put the counter back by a plain store. A red returns nothing.
    """
    text = HEAD + TICKETS.format(takes=takes, which=which)
    result = ptxsim.load(text).launch("k", grid=2, block=64, args=[np.zeros(4, np.uint32)])
    assert result.verdict == verdict, result.findings


BOXES = """.visible .entry k(.param .align 64 .b8 map[128]) {
  .reg .b32 %t, %x, %tile, %own; .reg .pred %lead; .shared .align 128 .b8 tile[256];
  mov.u32 %t, %tid.x; mov.u32 %x, %ctaid.x; mov.u32 %tile, tile; setp.eq.u32 %lead, %t, 40;
  shl.b32 %x, %x, 2; shl.b32 %own, %t, 2; add.u32 %own, %tile, %own;
  st.shared.u32 [%own], %t; fence.proxy.async.shared::cta; bar.sync 0;
  @%lead cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [map, {%x, 0}], [%tile];
  @%lead cp.async.bulk.commit_group; @%lead cp.async.bulk.wait_group 0;
  ret;
}"""


@pytest.mark.parametrize("width, verdict", [(4, "clean"), (8, "error")])
def test_boxes_that_any_thread_of_many_equal_clusters_stores_are_compared(width, verdict):
    out = np.zeros((64 // width, 64), np.uint32)
    tmap = ptxsim.TensorMap(out, box=(width, 64 // width))
    result = ptxsim.load(HEAD + BOXES).launch("k", grid=8, block=64, args=[tmap])
    assert result.verdict == verdict, result.findings


TURNS = """.global .align 4 .u32 turn = 0; .global .align 4 .u32 count = 0;
.visible .entry k() {{ .reg .b32 %o, %n, %c; .reg .pred %p; mov.u32 %c, %ctaid.x;
  W: {ask} setp.ne.u32 %p, %o, %c; @%p bra W;
  ld.global.u32 %n, [count]; add.u32 %n, %n, 1; st.global.u32 [count], %n;
  add.u32 %c, %c, 1; st.release.gpu.global.u32 [turn], %c; ret;
}}"""


@pytest.mark.parametrize("how, cause", [("acquire", None), ("relaxed", "hands-nothing-on")])
def test_who_changes_a_word_by_turns_is_told_of_the_flag_that_hands_nothing_on(how, cause):
    text = HEAD + TURNS.format(ask=f"ld.{how}.gpu.global.u32 %o, [turn];")
    found = ptxsim.load(text).launch("k", grid=3, block=1).findings
    assert [finding.evidence["cause"] for finding in found] == [cause] * bool(cause)
