"""Threads that poll a word which nothing changes any more: the report names it, and who should write it."""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, lines, run_rule

ASK = "ASK: {0}; setp.ne.u32 %p, %r0, {1}; @%p bra ASK; {2}"
LOAD = "ld.acquire.gpu.global.u32 %r0, [%in]"
POLLS = {
    "too few": (
        lines("@%w1 bra ON; @!%lead bra MEET; st.release.gpu.global.u32 [%in], 7; bra MEET; ON:",
              ASK.format(LOAD, 8, ""), "MEET: bar.sync 0;"),
        "warp 1 waits for argument 0 + 0 B to change (PTX line 16): it holds 7, which thread 0 wrote last "
        "(PTX line 15), and no thread is left to write it",
    ),
    "before the barrier": (
        lines("@!%lead bra MEET;", ASK.format(LOAD, 1, ""),
              "MEET: bar.sync 0; @!%w1 bra END; st.release.gpu.global.u32 [%in], 1; END:"),
        "it holds 0; nobody has written it, and warp 1 would write it (PTX line 17), but waits for bar",
    ),
    "a lock that is held at a barrier": (
        lines("and.b32 %r1, %t, 31; setp.ne.u32 %q, %r1, 0; @%q bra MEET;",
              ASK.format("atom.global.cas.b32 %r0, [%in], 0, 1", 0, ""), "MEET: bar.sync 0;",
              "@%q bra END; atom.global.exch.b32 %r0, [%in], 0; END:"),
        "would write it (PTX line 18), but waits for bar.sync 0",
    ),
    "in shared memory": (
        lines("@%lead st.volatile.shared.u32 [buffer], 3; bar.sync 0;",
              ASK.format("ld.volatile.shared.u32 %r0, [buffer]", 4, "")),
        "warps 0-1 wait for buffer to change (PTX line 16): it holds 3, which thread 0 wrote last",
    ),
}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", POLLS)
def test_the_word_is_named(name, order):
    text, words = POLLS[name]
    told = run_rule(Rule(name, text), text, order).findings
    assert told[0].evidence["cause"] == "polls" and words in told[0].message, [str(f) for f in told]
