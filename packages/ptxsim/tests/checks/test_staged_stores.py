"""A ring of two parts that threads fill and one thread stores in bulk: each barrier or wait that it lacks is
told as itself.
"""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, check_kept, lines, run_rule

WAIT = "@%lead cp.async.bulk.wait_group.read 1;"
FREE = "bar.sync 0; // the part is free"
FULL = "bar.sync 0; // the part is full"
RING = Rule(
    "staged-stores",
    lines(
        "mov.u32 %x2, 0; mov.u64 %y3, %out;",
        f"ROUND: {WAIT}",
        FREE,
        "and.b32 %x3, %x2, 1; shl.b32 %x3, %x3, 8; add.u32 %x4, %mine, %x3; add.u32 %x3, %sm, %x3;",
        "st.shared.u32 [%x4], %x2; fence.proxy.async;",
        FULL,
        "@%lead cp.async.bulk.global.shared::cta.bulk_group [%y3], [%x3], 256;",
        "@%lead cp.async.bulk.commit_group;",
        "add.u64 %y3, %y3, 256; add.u32 %x2, %x2, 1; setp.lt.u32 %p, %x2, 4; @%p bra ROUND;",
        "@%lead cp.async.bulk.wait_group 0;",
    ),
)
TWINS = {
    "one wait too lax": (WAIT, WAIT.replace("1;", "2;"), "leaves 2 pending, and this is one of them"),
    "no wait": (WAIT, "", "its thread has not waited for it"),
    "free": (FREE, "", "no barrier stands between"),
    "full": (FULL, "", "threads write, the TMA store reads, and no bar.sync 0 stands between"),
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_ring_is_clean(order):
    check_kept(RING, order)


@pytest.mark.parametrize("order", ("program", "adverse"))
@pytest.mark.parametrize("twin", TWINS)
def test_what_is_missing_is_told(twin, order):
    old, new, words = TWINS[twin]
    assert RING.text.count(old) == 1
    found = [f for f in run_rule(RING, RING.text.replace(old, new), order).findings if f.severity == "error"]
    assert found and all(f.kind == "race" and words in f.message for f in found), [str(f) for f in found]


@pytest.mark.parametrize("order", ORDERS)
def test_a_wait_for_all_still_needs_a_barrier_before_others_write(order):
    """One part only: its thread waits for each store, but perhaps only after another one has written."""
    text = RING.text.replace(WAIT, WAIT.replace("1;", "0;")).replace("%x3, %x2, 1;", "%x3, %x2, 0;")
    assert not run_rule(RING, text, order).findings
    found = run_rule(RING, text.replace(FREE, ""), order).findings
    causes = {f.evidence.get("cause") for f in found}
    assert causes & {"group-late", "group-unguarded"} and "stores-pending" not in causes, list(
        map(str, found)
    )
