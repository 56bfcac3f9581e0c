"""What a program does with the result of a wait, by its text."""

import pytest

import ptxsim
from ptxsim.checks.static_flow import ignored_questions
from ptxsim.lowering.answers import asked_again

HEAD = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 pout) {
.reg .b32 %r<6>; .reg .b64 %out; .reg .pred %p<4>;
.shared .align 8 .b64 bars[2];
mov.u32 %r1, bars; ld.param.u64 %out, [pout];
"""
ASK = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;\n"
CASES = {  # text -> (control returns to the wait, its result decides nothing)
    "loop": ("A: " + ASK + "@%p1 bra B; bra A; B:\n", True, False),
    "loop with a word in between": (
        "A: " + ASK + "selp.b32 %r2, 1, 0, %p1; setp.eq.u32 %p2, %r2, 0; @%p2 bra A;\n", True, False
    ),
    "loop that does other work": (
        "mov.u32 %r3, 0; A: " + ASK + "st.shared.u32 [%r1+8], %r3; add.u32 %r3, %r3, 1; "
        "setp.lt.u32 %p2, %r3, 4; @%p2 bra A;\n", False, True
    ),
    "dropped": (ASK + "selp.b32 %r2, 1, 0, %p1;\n", False, True),
    "kept": (ASK + "selp.b32 %r2, 1, 0, %p1; st.global.u32 [%out], %r2;\n", False, False),
    "guards a store": (ASK + "@%p1 st.global.u32 [%out], %r1;\n", False, False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_becomes_of_the_answer(name):
    text, again, ignored = CASES[name]
    program = ptxsim.load(f"{HEAD}{text}ret;\n}}\n").programs["k"]
    (row,) = [n for n, i in enumerate(program.instrs) if i is not None and i.op == "mbarrier"]
    assert asked_again(program) == ({row} if again else set())
    assert ignored_questions(program) == ({row} if ignored else set())


@pytest.mark.parametrize("waits, told", [("", 1), ("W: " + ASK.replace("%p1", "%p2") + "@!%p2 bra W;\n", 0)])
def test_an_answer_may_be_dropped_if_the_warp_waits_later(waits, told):
    init = "@%p3 mbarrier.init.shared::cta.b64 [%r1], 32; bar.sync 0;\n"
    arrive = "mbarrier.arrive.shared::cta.b64 _, [%r1];\n"
    head = "mov.u32 %r4, %tid.x; setp.eq.u32 %p3, %r4, 0;\n"
    text = f"{HEAD}{head}{init}{CASES['dropped'][0]}{arrive}{waits}ret;\n}}\n"
    result = ptxsim.load(text).launch("k", block=32, args=[0])
    assert len([f for f in result.findings if "the result is ignored" in f.message]) == told
