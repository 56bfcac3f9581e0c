"""Where lanes reconverge after unusual branches: empty ones, loops without an exit, early returns."""

from __future__ import annotations

import numpy as np
import pytest
from warp_kernels import register_kernel, run_registers

import ptxsim
from ptxsim.lowering import cfg
from ptxsim.lowering.meeting_points import meeting_points

ODD = "and.b32 %x0, %t, 1; setp.eq.u32 %p, %x0, 1;"
ALIGNED = "bar.sync 0; shfl.sync.idx.b32 %o0, %r0, 3, 31, -1;"


@pytest.mark.parametrize("branch", [
    "@%p bra L; L:", "@!%p bra L; bra.uni L; L:", "@%p bra A; bra B; A: B:", "@%p bra A; bra B; A: bra B; B:",
])  # fmt: skip
def test_a_branch_around_nothing_leaves_the_lanes_together(branch):
    data = np.arange(32, dtype=np.uint32).reshape(1, 32)
    ptx = register_kernel(f"{ODD} {branch} elect.sync _|%q, -1; {ALIGNED}", 1, 1)
    assert (run_registers(ptx, data, 1) == 3).all()


def test_a_jump_table_with_one_target_leaves_the_lanes_together():
    ptx = register_kernel(f"{ODD} ts: .branchtargets L, L; brx.idx %x0, ts; L: {ALIGNED}", 1, 1)
    assert (run_registers(ptx, np.arange(32, dtype=np.uint32).reshape(1, 32), 1) == 3).all()


def test_lanes_meet_inside_a_loop_that_has_no_exit():
    # 0: head, if -> 2; 1: then; 2: join, if -> 4; 3: then; 4: jumps to 0
    targets, falls = {0: [2], 2: [4], 4: [0]}, {0: True, 2: True, 4: False}
    blocks = cfg.build_blocks(5, targets, falls)
    assert meeting_points(blocks) == [2, 2, 4, 4, 0]
    assert blocks[4].next == [0]


def test_lanes_outside_wait_for_those_that_may_enter_a_loop_without_exit():
    # 0: if -> 3; 1: if -> 1 (inner loop); 2: jumps to 1; 3: leaves
    blocks = cfg.build_blocks(4, {0: [3], 1: [1], 2: [1], 3: []}, {0: True, 1: True, 2: False, 3: False})
    assert meeting_points(blocks)[:2] == [3, 1]


@pytest.mark.parametrize("jumps", range(1, 5))
def test_lanes_that_jump_back_from_several_places_meet_at_the_head_of_the_loop(jumps):
    # 0: enters; 1: head; then `jumps` conditional jumps to 1, and one without a condition
    targets = {0: [1], **{b: [1] for b in range(2, jumps + 3)}}
    blocks = cfg.build_blocks(jumps + 3, targets, {b: 0 < b < jumps + 2 for b in targets})
    assert meeting_points(blocks)[1:] == [1] * (jumps + 1) and len(blocks) == jumps + 2


def test_an_elected_lane_and_its_warp_go_round_a_loop_without_exit_together():
    turn = "elect.sync %r0|%p, -1; @!%p bra ROUND; add.u32 %x1, %x1, 1; bra.uni ROUND;"
    ptx = register_kernel(f"mov.u32 %x1, 0; ROUND: {turn}", 1, 1)
    result = ptxsim.load(ptx).launch(
        "k", grid=1, block=32, args=[np.zeros(32, np.uint32), np.zeros(32, np.uint32)], max_instructions=5000
    )
    assert {f.evidence["cause"] for f in result.findings} == {"endless"}


def test_an_endless_role_does_not_part_the_lanes_of_another_warp():
    # each warp's lane 0 has a role; that of warp 1 is a loop without an exit
    roles = "setp.ne.u32 %p, %r0, 0; @%p bra END; setp.eq.u32 %q, %x1, 1; @!%q bra END; IN: bra.uni IN;"
    ptx = register_kernel(f"and.b32 %r0, %t, 31; shr.u32 %x1, %t, 5; {roles} END: bar.sync 0;", 1, 1)
    module = ptxsim.load(ptx)
    data = np.zeros(64, np.uint32)
    result = module.launch("k", grid=1, block=64, args=[data, np.zeros(64, np.uint32)])
    assert {f.kind for f in result.findings} == {"deadlock"}


EARLY = {
    "a return inside": "@!%p bra ON; add.u32 %r0, %r0, 0; @%q bra OUT; ON:",
    "work and a return": "@!%p bra ON; @!%q bra ON; add.u32 %r0, %r0, 1; bra.uni OUT; ON:",
    "a return of its own": "@!%p bra ON; @!%q bra ON; add.u32 %r0, %r0, 1; ret; ON:",
    "in a loop": "IN: @!%p bra ON; @%q bra OUT; ON: add.u32 %x1, %x1, 1; setp.lt.u32 %p, %x1, 3; @%p bra IN;",
}


def lane_zero_may_return(early: str, who: int, rest: str) -> str:
    """Lane 0 executes `early`, in which thread `who` returns; then the whole warp executes the rest."""
    start = f"setp.eq.u32 %p, %t, 0; setp.eq.u32 %q, %t, {who}; mov.u32 %x1, 0;"
    return register_kernel(f"{start} {early} {rest} bra.uni STORE; OUT: ret; STORE:", 1, 1)


@pytest.mark.parametrize("early", EARLY.values(), ids=EARLY)
def test_lanes_meet_although_some_may_return_early(early):
    ptx = lane_zero_may_return(early, 99, ALIGNED)
    assert (run_registers(ptx, np.arange(32, dtype=np.uint32).reshape(1, 32), 1) == 3).all()


@pytest.mark.parametrize("early", EARLY.values(), ids=EARLY)
def test_those_that_stay_meet_when_one_has_returned(early):
    ptx = lane_zero_may_return(early, 0, "bar.sync 0; mov.u32 %o0, 7;")
    data = np.arange(64, dtype=np.uint32).reshape(1, 64)
    assert run_registers(ptx, data, 1)[0].tolist() == [0] + [7] * 63
