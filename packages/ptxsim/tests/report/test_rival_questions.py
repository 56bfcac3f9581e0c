"""A hint names other causes of the same record; if the record shows the cause, the hint asks nothing."""

from __future__ import annotations

from collections import Counter

import pytest

import ptxsim
from ptxsim.causes.rivals import RIVALS, SHOWN, rivals_of

HEAD = ".version 8.8\n.target sm_100a\n.address_size 64\n"
WAITS = """.visible .entry k() { .reg .pred %p, %q; .reg .b32 %a, %t; .reg .b64 %s;
  .shared .align 8 .b8 bar[8];
  mov.u32 %a, bar; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0;
  @%p mbarrier.init.shared.b64 [%a], COUNT;
  bar.sync 0;
  ARRIVE mbarrier.arrive.shared.b64 %s, [%a];
again:
  mbarrier.try_wait.parity.shared.b64 %q, [%a], 0;
  @!%q bra again;
  ret; }
"""
ONE_MISSING = {
    "the count is too high": {"COUNT": "33", "ARRIVE": ""},
    "a condition keeps one away": {"COUNT": "32", "ARRIVE": "@!%p"},
}


@pytest.mark.parametrize("changed", ONE_MISSING.values(), ids=ONE_MISSING)
def test_what_a_record_cannot_tell_apart_gets_one_hint_that_names_both(changed):
    text = WAITS
    for word, new in changed.items():
        text = text.replace(word, new)
    first = ptxsim.load(HEAD + text).launch("k", block=32).findings[0]
    assert first.evidence["cause"] in ("partial", "arrivals")
    assert "init(count) must equal" in first.hint and "prevent an intended arrival?" in first.hint


def test_right_counts_of_right_arrivals_leave_nothing_to_ask():
    text = WAITS.replace("COUNT", "32").replace("ARRIVE", "")
    assert ptxsim.load(HEAD + text).launch("k", block=32).verdict == "clean"


def test_rivals_are_of_causes_that_there_are_and_two_at_most_of_each():
    named = Counter(cause for rival in RIVALS for cause in rival.of)
    assert set(named) <= set(ptxsim.CAUSES) and max(named.values()) <= 2
    assert set(ptxsim.CAUSES) >= SHOWN and not SHOWN & set(named)


def test_a_language_s_own_hint_is_followed_by_the_same_questions():
    (asked,) = rivals_of("bytes")
    hints = ptxsim.Hints({"bytes": "announce them all", "aligned": "nobody may skip sync_all()"})
    assert hints.hint(ptxsim.CAUSES["bytes"], "deadlock") == f"announce them all. Or {asked}?"
    assert hints.hint(ptxsim.CAUSES["aligned"], "collective") == "nobody may skip sync_all()"
