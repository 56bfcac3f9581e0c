"""Deadlocks at barriers of several arrays in one buffer without names, as in dynamic shared memory."""

from __future__ import annotations

import pytest
from truth import Rule, lines, run_rule

# warp 0 fills two slots in turn (full: +0, +8; free: +16, +24), warp 1 empties them, and both meet at +32
WAIT = "{{ AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %q, [%x4+{at}], {parity}; @!%q bra AGAIN; }}"
SLOT = "and.b32 %x2, %x1, 1; mad.lo.u32 %x4, %x2, 8, %bar; bfe.u32 %x5, %x1, 1, 1;"
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [{}];"
ROUNDS = "add.u32 %x1, %x1, 1; setp.lt.u32 %p, %x1, 6; @%p bra"
TEXT = lines(
    *(f"@%lead mbarrier.init.shared::cta.b64 [%bar+{8 * i}], {1 + (i == 4)};" for i in range(5)),
    "bar.sync 0; mov.u32 %x1, 0; and.b32 %x6, %t, 31; setp.ne.u32 %p, %x6, 0; @%p bra END;",
    "@%w1 bra EMPTY;",
    f"FILL: {SLOT} xor.b32 %x6, %x5, 1;",
    WAIT.format(at=16, parity="%x6"),
    ARRIVE.format("%x4") + " // full",
    f"{ROUNDS} FILL; bra MEET;",
    f"EMPTY: {SLOT}",
    WAIT.format(at=0, parity="%x5"),
    ARRIVE.format("%x4+16") + " // free",
    f"{ROUNDS} EMPTY;",
    "MEET: " + ARRIVE.format("%bar+32"),
    "mov.u32 %x4, %bar;",
    WAIT.format(at=32, parity="0"),
    "END:",
)


@pytest.mark.parametrize("new", [ARRIVE.format("%x4+32"), ""])
def test_signals_of_another_array_are_not_those_of_the_ring(new):
    old, words = ARRIVE.format("%x4+16") + " // free", "nobody signals buffer + 8208 B"
    rule = Rule("nameless", TEXT)
    assert run_rule(rule, TEXT, "program").verdict == "clean" and TEXT.count(old) == 1
    found = [f for f in run_rule(rule, TEXT.replace(old, new), "program").findings if f.kind == "deadlock"]
    assert [f.message.partition(" of CTA")[0][: len(words)] for f in found] == [words], found


RING = lines(  # an unrolled loop over four barriers, the parity of each wait taken from the round
    *(f"@%lead mbarrier.init.shared::cta.b64 [full+{8 * i}], 1;" for i in range(4)),
    "bar.sync 0; @!%w0 bra END;",
    *(
        f"@%lead {ARRIVE.format(f'full+{8 * i}')} mov.u32 %x4, full; {WAIT.format(at=8 * i, parity=i & 1)}"
        for i in range(4)
    ),
    "END:",
)


def test_without_source_lines_a_variable_of_barriers_is_one_array():
    text = ".shared .align 8 .b8 full[32];\n" + RING
    (first,) = [f for f in run_rule(Rule("ring", text), text, "program").findings if f.kind == "deadlock"]
    assert "waits for phase 1 of full + 8 B, but has never waited for phase 0" in first.message
    assert "None" not in first.message and "(line" not in first.message and "(PTX line" in first.message


STATE = (
    "mbarrier.arrive.shared::cta.b64 %y1, [{0}]; "
    "AT{1}: mbarrier.try_wait.shared::cta.b64 %q, [{0}], %y1; @!%q bra AT{1};"
)
AHEAD = lines(  # warp 0 signals full once a round, with the 32 lanes of warp 1, which hand the slot back
    "@%lead mbarrier.init.shared::cta.b64 [full], 33; @%lead mbarrier.init.shared::cta.b64 [free], 33;",
    "bar.sync 0; mov.u32 %x1, 0; @%w1 bra EMPTY; and.b32 %x6, %t, 31; setp.ne.u32 %p, %x6, 0; @%p bra END;",
    "FILL: " + STATE.format("free", 0) + " // room",
    ARRIVE.format("full"),
    f"{ROUNDS} FILL; bra END;",
    "EMPTY: " + ARRIVE.format("free"),
    STATE.format("full", 1),
    "bar.warp.sync 0xffffffff;",
    f"{ROUNDS} EMPTY;",
    "END:",
)


def test_who_signals_without_waiting_for_room_and_ends_is_the_cause_of_what_is_stuck():
    """Lanes that came a phase too late hold their warp: that they do is a consequence."""
    text = ".shared .align 8 .b8 full[8]; .shared .align 8 .b8 free[8];\n" + AHEAD
    wait = "FILL: " + STATE.format("free", 0) + " // room"
    assert run_rule(Rule("ahead", text), text, "program").verdict == "clean" and wait in text
    result = run_rule(Rule("ahead", text), text.replace(wait, "FILL:"), "program")
    (first,) = [f for f in result.findings if f.kind == "deadlock"]
    assert "signalled it 6 times by phase 2 and has ended: nobody ever waits for free" in first.message
    assert first.evidence["cause"] == "ahead-unwaited"


# warp 0 loads into two slots (full: +0, +8) after a first round without a wait, warp 1 hands them back (free:
# +16, +24) and then reports to warp 2 (done: +32): one loop initialises all five
ONE_LOOP = lines(
    "mov.u32 %x1, 0; mov.u32 %x4, mbars;",
    "MAKE: @%lead mbarrier.init.shared::cta.b64 [%x4], 1; add.u32 %x4, %x4, 8; add.u32 %x1, %x1, 1;",
    "setp.lt.u32 %p, %x1, 5; @%p bra MAKE;",
    "bar.sync 0; mov.u32 %x1, 0; and.b32 %x6, %t, 31; setp.ne.u32 %p, %x6, 0; @%p bra END;",
    "setp.lt.u32 %p, %t, 32; @%p bra FILL; @%w1 bra EMPTY; mov.u32 %x4, mbars;",
    WAIT.format(at=32, parity="0"),
    "bra END;",
    f"FILL: {SLOT} setp.lt.u32 %p, %x1, 2; @%p bra LOAD; xor.b32 %x5, %x5, 1;".replace("%bar", "%x7"),
    WAIT.format(at=16, parity="%x5"),
    "LOAD: " + ARRIVE.format("%x4"),
    f"{ROUNDS} FILL; bra END;",
    f"EMPTY: {SLOT}".replace("%bar", "%x7"),
    WAIT.format(at=0, parity="%x5"),
    ARRIVE.format("%x4+16") + " // free",
    f"{ROUNDS} EMPTY;",
    ARRIVE.format("%x7+32") + " // done",
    "END:",
)


@pytest.mark.parametrize("gone, at", [("%x4+16", 16), ("%x7+32", 32)])
def test_one_variable_holds_arrays_of_several_roles(gone, at):
    text = lines(".shared .align 8 .b8 mbars[48]; mov.u32 %x7, mbars;", ONE_LOOP)
    rule = Rule("one-variable", text, threads=96)
    assert run_rule(rule, text, "program").verdict == "clean"
    found = run_rule(rule, text.replace(ARRIVE.format(gone), ""), "program").findings
    said = [f.message for f in found if f.kind == "deadlock"]
    assert said[0].startswith(f"nobody signals mbars + {at} B"), said


def test_a_masked_address_is_known_to_signal():
    """With 0xFEFFFFFF, CUTLASS names the barrier in the first CTA of a pair."""
    text = lines(
        *(f"@%lead mbarrier.init.shared::cta.b64 [%bar+{at}], 1;" for at in (0, 16)),
        "bar.sync 0; and.b32 %x6, %t, 31; setp.ne.u32 %p, %x6, 0; @%p bra END;",
        "and.b32 %x7, %bar, 0xFEFFFFFF;",
        "mov.u32 %x4, %bar; @%w1 bra EMPTY;",
        WAIT.format(at=16, parity="1"),
        ARRIVE.format("%x7") + " bra END;",
        "EMPTY:",
        WAIT.format(at=0, parity="0"),
        ARRIVE.format("%x4+16"),
        "END:",
    )
    rule = Rule("masked", text)
    assert run_rule(rule, text, "program").verdict == "clean"
    waits = text.replace(WAIT.format(at=16, parity="1"), WAIT.format(at=16, parity="0"))
    (found,) = [f for f in run_rule(rule, waits, "program").findings if f.kind == "deadlock"]
    assert "nobody starts" in found.message, found.message
