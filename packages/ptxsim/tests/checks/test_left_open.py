"""Barriers that end in the middle of a phase: clean if only threads that wait for them have not arrived."""

import numpy as np
import pytest

import ptxsim

# Warp 0 fills a slot ROUNDS times, warp 1 copies it out. Both warps arrive on `full` and on `empty`. A warp
# that waits for a barrier arrives on it first, as `b.wait(b.arrive())` of cuda::barrier does. Warp 1 hands
# the empty slot over at the start and after each round; the last time, nobody takes it.
ROUNDS = 5
RING = f"""
.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) {{
  .shared .align 8 .b8 full[8]; .shared .align 8 .b8 empty[8]; .shared .align 4 .b8 slot[128];
  .reg .b64 %p, %o, %state; .reg .b32 %t, %lane, %i, %x, %f, %e, %s; .reg .pred %first, %second, %more, %done;
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; and.b32 %lane, %t, 31; mov.u32 %i, 0;
  mov.u32 %f, full; mov.u32 %e, empty; mov.u32 %s, slot; mad.lo.u32 %s, %lane, 4, %s;
  setp.eq.u32 %first, %t, 0; setp.ge.u32 %second, %t, 32;
  @%first mbarrier.init.shared.b64 [%f], 64;
  @%first mbarrier.init.shared.b64 [%e], 64;
  bar.sync 0;
  @%second bra CONSUMER;
FILL:
  mbarrier.arrive.shared.b64 %state, [%e];
FREE:
  mbarrier.try_wait.shared.b64 %done, [%e], %state; @!%done bra FREE;
  add.u32 %x, %lane, %i; st.shared.u32 [%s], %x;
  mbarrier.arrive.shared.b64 _, [%f];
  add.u32 %i, %i, 1; setp.lt.u32 %more, %i, {ROUNDS}; @%more bra FILL;
  ret;
CONSUMER:
  mbarrier.arrive.shared.b64 _, [%e];
TAKE:
  mbarrier.arrive.shared.b64 %state, [%f];
READY:
  mbarrier.try_wait.shared.b64 %done, [%f], %state; @!%done bra READY;
  ld.shared.u32 %x, [%s];
  mad.lo.u32 %x, %i, 32, %x; mad.wide.u32 %o, %i, 128, %p;
  mad.wide.u32 %o, %lane, 4, %o; st.global.u32 [%o], %x;
  HAND_BACK
  add.u32 %i, %i, 1; setp.lt.u32 %more, %i, {ROUNDS}; @%more bra TAKE;
  ret;
}}
"""
ARRIVE = "mbarrier.arrive.shared.b64 _, [%e];"
LAST_BY_FEWER = (
    f"setp.lt.u32 %more, %i, {ROUNDS - 1}; setp.lt.or.u32 %more, %lane, 16, %more; @%more {ARRIVE}"
)


@pytest.mark.parametrize("hand_back, verdict", [(ARRIVE, "clean"), (LAST_BY_FEWER, "review")])
@pytest.mark.parametrize("order", ["program", "adverse"])
def test_the_last_slot_that_is_handed_back_needs_no_taker(hand_back, verdict, order):
    out = np.zeros((ROUNDS, 32), np.uint32)
    module = ptxsim.load(RING.replace("HAND_BACK", hand_back))
    result = module.launch("k", block=64, args=[out], order=order)
    assert result.verdict == verdict, result.findings
    assert all("is left in the middle of phase" in finding.message for finding in result.findings)
    assert (out == np.arange(ROUNDS)[:, None] * 33 + np.arange(32)).all()
