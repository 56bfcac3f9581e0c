"""A stage of a ring that threads hand back before they have read it, where threads fill it."""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, check_kept, lines, run_rule

SLOT = "and.b32 %x2, %x1, 1; shl.b32 %x3, %x2, 3; bfe.u32 %x5, %x1, 1, 1;"
WAIT = "{0}: mbarrier.try_wait.parity.shared::cta.b64 %q, [%x4], {1}; @!%q bra {0};"
ROUNDS = "add.u32 %x1, %x1, 1; setp.lt.u32 %p, %x1, 6; @%p bra"
ROOM = WAIT.format("ROOM", "%x7")
HAND_BACK = "mov.u32 %x4, free; add.u32 %x4, %x4, %x3; mbarrier.arrive.shared::cta.b64 _, [%x4];"
READ = "shl.b32 %x6, %x2, 7; add.u32 %x6, %mine, %x6; ld.shared.u32 %r1, [%x6-128];"
TEXT = lines(
    ".shared .align 8 .b64 full[2]; .shared .align 8 .b64 free[2];",
    *(f"@%lead mbarrier.init.shared::cta.b64 [{a}+{8 * i}], 32;" for a in ("full", "free") for i in (0, 1)),
    "bar.sync 0; mov.u32 %x1, 0; @%w1 bra EMPTY;",
    f"FILL: {SLOT} xor.b32 %x7, %x5, 1; mov.u32 %x4, free; add.u32 %x4, %x4, %x3;",
    ROOM,
    "shl.b32 %x6, %x2, 7; add.u32 %x6, %mine, %x6; st.shared.u32 [%x6], %x1;",
    "mov.u32 %x4, full; add.u32 %x4, %x4, %x3; mbarrier.arrive.shared::cta.b64 _, [%x4];",
    f"{ROUNDS} FILL; bra END;",
    f"EMPTY: {SLOT} mov.u32 %x4, full; add.u32 %x4, %x4, %x3;",
    WAIT.format("DATA", "%x5"),
    f"{READ} {HAND_BACK}",
    f"{ROUNDS} EMPTY;",
    "END:",
)
RULE = Rule("ring of threads", TEXT)
OF_ONE_STAGE = (
    f"setp.ne.u32 %p, %x2, 1; @%p bra LATER; {HAND_BACK}\nLATER: {READ} @!%p bra DONE; {HAND_BACK}\nDONE:"
)


def told(new: str, old: str, order):
    broken = TEXT.replace(old, new)
    assert broken != TEXT
    return run_rule(RULE, broken, order).findings[0]


def test_a_stage_handed_back_after_the_read():
    check_kept(RULE, "program")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("early, stage", [(f"{HAND_BACK} {READ}", 0), (OF_ONE_STAGE, 1)])
def test_a_stage_handed_back_before_the_read(early, stage, order):
    first = told(early, f"{READ} {HAND_BACK}", order)
    assert (first.kind, first.evidence["cause"]) == ("race", "early"), first
    assert f"free[{stage}] was signalled" in first.message and "before the read by thread" in first.message


@pytest.mark.parametrize("order", ORDERS)
def test_a_stage_filled_without_a_wait_was_not_handed_back_early(order):
    first = told("", ROOM, order)
    assert first.kind == "race" and first.evidence["cause"] == "not-free", first


@pytest.mark.parametrize("order", ORDERS)
def test_a_barrier_that_nobody_waits_for_does_not_hide_that(order):
    """The filler waits last for its own barrier, and the reader also arrives on one that nobody asks."""
    idle = "mov.u32 %x4, idle; mbarrier.arrive.shared::cta.b64 _, [%x4];"
    own = "and.b32 %x8, %x1, 1; mbarrier.arrive.shared::cta.b64 _, [own]; mov.u32 %x4, own; "
    text = TEXT.replace(ROOM, f"{ROOM}\n{own}{WAIT.format('OWN', '%x8')}")
    text = text.replace("free[2];\n", "free[2]; .shared .align 8 .b64 own; .shared .align 8 .b64 idle;\n", 1)
    for bar in ("own", "idle"):
        text = text.replace("bar.sync", f"@%lead mbarrier.init.shared::cta.b64 [{bar}], 32; bar.sync", 1)
    assert not run_rule(
        RULE, text.replace(f"{READ} {HAND_BACK}", f"{READ} {idle} {HAND_BACK}"), order
    ).findings
    early = text.replace(f"{READ} {HAND_BACK}", f"{HAND_BACK} {READ} {idle}")
    assert run_rule(RULE, early, order).findings[0].evidence["cause"] == "early"
