"""Truth table of plain loads that atom.cas verifies: a review where that is all, an error otherwise."""

from __future__ import annotations

import pytest
from truth import Rule, lines, run_rule

LOOP = lines(
    "ld.global.u32 %r0, [%out];",
    "AGAIN: add.u32 %r1, %r0, 1;",
    "atom.global.cas.b32 %r2, [%out], %r0, %r1;",
    "setp.ne.u32 %p, %r0, %r2;",
    "mov.u32 %r0, %r2;",
    "@%p bra AGAIN;",
)
IN_THE_LOOP = lines(
    "AGAIN: ld.global.u32 %r0, [%out];",
    "add.u32 %r1, %r0, 1;",
    "atom.global.cas.b32 %r2, [%out], %r0, %r1;",
    "setp.ne.u32 %p, %r0, %r2;",
    "@%p bra AGAIN;",
    "st.global.u32 [%myout+4096], %r0;",  # found in memory: as good as %r2
)
SHARED = lines(
    "@%lead st.shared.u32 [buffer+64], 0; bar.sync 0;",
    "ld.shared.u32 %r0, [buffer+64]; mov.u32 %x9, buffer; add.u32 %x10, %x9, 64;",
    "AGAIN: cvt.rn.f32.u32 %f0, %r0; add.f32 %f0, %f0, 0f3F800000; cvt.rzi.u32.f32 %r1, %f0;",
    "atom.shared.cas.b32 %r2, [%x10], %r0, %r1;",
    "setp.eq.u32 %p, %r2, %r0; mov.b32 %r0, %r2; @!%p bra AGAIN;",
)
CHANGES = (  # program, text, its replacement
    (LOOP, "ld.global.u32 %r0, [%out];", "ld.global.u32 %r0, [%out]; st.global.u32 [%myout+4096], %r0;"),
    (LOOP, "ld.global.u32 %r0, [%out];", "ld.global.u32 %r0, [%out]; setp.gt.u32 %q, %r0, 40; @%q bra END;"),
    (
        LOOP,
        "atom.global.cas.b32 %r2, [%out]",
        "red.global.add.u32 [%out], 1; atom.global.cas.b32 %r2, [%out+4]",
    ),
    (LOOP, "ld.global.u32 %r0, [%out];", "ld.global.u8 %r0, [%out];"),
    (LOOP, "AGAIN: add.u32 %r1, %r0, 1;", "add.u32 %r1, %r0, 1; AGAIN:"),  # made of the first guess alone
    (LOOP, "%r0, %r1;\nsetp", "%r1, %r0;\nsetp"),  # another value is compared
    (LOOP, "cas.b32 %r2, [%out], %r0, %r1;", "exch.b32 %r2, [%out], %r1;"),
    (
        IN_THE_LOOP,
        "@%p bra AGAIN;",
        "@!%p bra OVER; @%lead st.global.u32 [%myout+8192], %r0; bra AGAIN; OVER:",
    ),
    (IN_THE_LOOP, "add.u32 %r1, %r0, 1;", "add.u32 %r1, %r0, 1; shfl.sync.idx.b32 %r3, %r0, 0, 31, -1;"),
    (IN_THE_LOOP, "%r0;", "%r0; st.global.u32 [%out], %r0;"),
    (SHARED, "add.u32 %x10, %x9, 64;", "add.u32 %x10, %x9, 32; red.shared.add.u32 [buffer+64], 1;"),
    (SHARED, "[%x10], %r0, %r1;", "[%x10], 7, %r1;"),
)


SLOT = lines(  # a slot of a table: taken by the thread that finds it empty, otherwise not touched
    "ld.global.u32 %r0, [%out];",
    "setp.ne.u32 %p, %r0, 0;",
    "@%p bra END;",
    "atom.global.cas.b32 %r2, [%out], 0, 7;",
)


def findings(text: str, order) -> list:
    ctas = 1 if "%myout" in text else 2  # all CTAs have the same words there
    return run_rule(Rule("guess", text, ctas=ctas), text + "\nEND:", order).findings


@pytest.mark.parametrize("order", ["program", "adverse", 7])
@pytest.mark.parametrize("text", [LOOP, IN_THE_LOOP, SHARED], ids=["before", "within", "shared"])
def test_a_guess_that_cas_verifies_is_one_review(text: str, order):
    found = findings(text, order)
    assert [(f.kind, f.severity) for f in found] == [("race", "review")]
    assert "only a guess" in found[0].message and "ld." in str(found[0])


@pytest.mark.parametrize("text, old, new", CHANGES)
def test_any_other_use_of_the_value_is_an_error(text: str, old: str, new: str):
    assert text.count(old) >= 1
    found = findings(text.replace(old, new, 1), "program")
    assert ("race", "error") in {(f.kind, f.severity) for f in found}, [str(f) for f in found]


@pytest.mark.parametrize("text, hint", [
    (SLOT, "ld.relaxed"),
    (SLOT.replace("ld.global", "ld.relaxed.gpu.global"), ""),
    (SLOT.replace("@%p bra END;", "@%p bra END; bar.sync 0;"), "not ordered"),
])  # fmt: skip
def test_a_plain_load_that_picks_what_cas_tries_is_to_be_relaxed(text: str, hint: str):
    found = [f for f in findings(text, "program") if f.kind == "race"]
    assert bool(found) is bool(hint)
    for one in found:
        assert one.severity == "error" and hint in str(one)
        assert ("ld.relaxed" in str(one)) is (hint == "ld.relaxed")


def test_a_guess_that_is_held_to_the_end_is_followed():
    text = lines("ld.global.u32 %r0, [%out];", "atom.global.cas.b32 %r2, [%out], %r0, 7;", "exit;")
    assert [(f.kind, f.severity) for f in findings(text, "program")] == [("race", "review")]
