"""The first finding of a small mistake names what was changed, in every order."""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, check_kept, lines, run_rule, wait

BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
PEER = lines(  # CTA 1 hands a word of its own to CTA 0
    "@%lead mbarrier.init.shared::cta.b64 [%bar], 64; fence.mbarrier_init.release.cluster;",
    "barrier.cluster.arrive; barrier.cluster.wait; setp.eq.u32 %p, %rank, 0; @%p bra READ;",
    "st.shared.u32 [%mine], %t; mapa.shared::cluster.u32 %peer, %bar, 0;",
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%peer]; bra MEET;",
    f"READ: {wait(0)} mapa.shared::cluster.u32 %peer, %other, 1; ld.shared::cluster.u32 %r1, [%peer];",
    "st.global.u32 [%myout], %r1;",
    "MEET: barrier.cluster.arrive; barrier.cluster.wait;",
)
ARRIVE = "mbarrier.arrive.shared::cta.b64 _,"
TWO_WAYS = lines(  # warp 1 stores, warp 0 reads, three times; each waits for the other
    "@%lead mbarrier.init.shared::cta.b64 [%bar], 32; @%lead mbarrier.init.shared::cta.b64 [%bar+8], 32;",
    "bar.sync 0; mov.u32 %x1, 0; @%w1 bra STORE;",
    f"READ: and.b32 %x2, %x1, 1; {wait('%x2')} ld.shared.u32 %r1, [%other];",
    f"{ARRIVE} [%bar+8];",
    "add.u32 %x1, %x1, 1; setp.lt.u32 %p, %x1, 3; @%p bra READ; st.global.u32 [%myout], %r1; bra END;",
    f"STORE: and.b32 %x2, %x1, 1; xor.b32 %x2, %x2, 1; {wait('%x2', 8)} st.shared.u32 [%mine], %x1;",
    f"{ARRIVE} [%bar];",
    "add.u32 %x1, %x1, 1; setp.lt.u32 %p, %x1, 3; @%p bra STORE;",
    "END:",
)
GROUPS = lines(  # each thread copies 16 B, and reads those of its neighbour
    "shl.b32 %x2, %t, 4; add.u32 %x3, %sm, %x2; xor.b32 %x4, %x3, 16; cvt.u64.u32 %y1, %x2;",
    "add.u64 %y2, %in, %y1; cp.async.ca.shared.global [%x3], [%y2], 16;",
    "cp.async.commit_group;",
    "cp.async.wait_group 0;",
    "bar.sync 0; ld.shared.u32 %r1, [%x4+12]; st.global.u32 [%myout], %r1; bar.sync 0;",
    "cp.async.wait_all;",
)
STAGES = lines(  # two stages of 256 B, both loaded before they are read
    "@%lead mbarrier.init.shared::cta.b64 [%bar], 1; @%lead mbarrier.init.shared::cta.b64 [%bar+8], 1;",
    "fence.mbarrier_init.release.cluster; bar.sync 0; mov.u32 %x1, 0; @!%lead bra READ;",
    "LOAD: shl.b32 %x2, %x1, 8; add.u32 %x3, %sm, %x2;",
    "shl.b32 %x4, %x1, 3; add.u32 %x4, %bar, %x4; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%x4], 256;",
    f"{BULK} [%x3], [%in], 256, [%x4]; add.u32 %x1, %x1, 1; setp.lt.u32 %p, %x1, 2; @%p bra LOAD;",
    f"READ: {wait(0, 8)} ld.shared.u32 %r2, [%mine+256]; {wait(0)} ld.shared.u32 %r1, [%mine];",
    "add.u32 %r1, %r1, %r2; st.global.u32 [%myout], %r1;",
)
MAIL = lines(  # thread 0 hands on a number to the threads of warps 1 and 2, three times
    ".shared .b32 mail; @%lead mbarrier.init.shared::cta.b64 [%bar], 1;",
    "@%lead mbarrier.init.shared::cta.b64 [%bar+8], 64; bar.sync 0; mov.u32 %x1, 0;",
    "setp.ge.u32 %q, %t, 32; @%q bra READ; @!%lead bra END;",
    f"TELL: and.b32 %x2, %x1, 1; xor.b32 %x2, %x2, 1; {wait('%x2', 8)} st.shared.u32 [mail], %x1;",
    f"{ARRIVE} [%bar]; add.u32 %x1, %x1, 1; setp.lt.u32 %p, %x1, 3; @%p bra TELL; bra END;",
    "READ: and.b32 %x2, %x1, 1; @%w1 bra ONE;",
    f"{wait('%x2')}",
    "bra BOTH;",
    f"ONE: {wait('%x2')}",
    "BOTH: ld.shared.u32 %r1, [mail];",
    f"{ARRIVE} [%bar+8];",
    "add.u32 %x1, %x1, 1; setp.lt.u32 %p, %x1, 3; @%p bra READ; st.global.u32 [%myout], %r1;",
    "END:",
)
CASES = [
    (MAIL, f"\n{ARRIVE} [%bar+8];", f"\n{ARRIVE} [%bar+8]; {ARRIVE} [%bar+8];", "several-lines", 1),
    (PEER, "release.cluster.shared::cluster", "release.cta.shared::cluster", "arrival-weak", 2),
    (TWO_WAYS, f"\n{ARRIVE} [%bar+8];", f"\n{ARRIVE} [%bar+8]; {ARRIVE} [%bar+8];", "several-lines", 1),
    (GROUPS, "cp.async.wait_group 0;", "", "groups", 1),
    (GROUPS, "cp.async.commit_group;", "", "groups", 1),
    (STAGES, "add.u32 %x3, %sm, %x2;", "add.u32 %x3, %sm, %x2; add.u32 %x3, %x3, 128;", "loads-shifted", 1),
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("text", "old", "new", "cause", "cluster"), CASES)
def test_the_first_finding_names_the_change(text, old, new, cause, cluster, order):
    rule = Rule("rule", text, cluster=cluster, threads=96 if text is MAIL else 64)
    check_kept(rule, order)
    assert text.count(old) == 1
    first = run_rule(rule, text.replace(old, new), order).findings[0]
    assert first.evidence["cause"] == cause, first


def test_a_short_copy_is_named_by_who_reads_behind_it():
    found = run_rule(Rule("short", GROUPS), GROUPS.replace("[%y2], 16", "[%y2], 8"), "adverse").findings
    assert found[0].kind == "uninitialized" and "cp.async copies 8 B (PTX line 16)" in found[0].message


def test_unrolled_reads_are_one_finding():
    twice = GROUPS.replace(
        "ld.shared.u32 %r1, [%x4+12];", "ld.shared.u32 %r1, [%x4+12]; ld.shared.u32 %r2, [%x4];"
    )
    (found,) = run_rule(Rule("twice", twice), twice.replace("cp.async.wait_group 0;", ""), "program").findings
    assert found.count == 2 * 64


def test_who_never_waits_is_told_before_what_comes_of_it():
    text, rule = MAIL.replace(f"\n{wait('%x2')}\n", "\n"), Rule("alone", MAIL, threads=96)
    first = run_rule(rule, text, 7).findings[0]
    assert first.evidence["cause"] == "never-waits" and "warp 2 did not wait" in first.message, first


def test_where_a_store_goes_is_luck_if_the_load_that_places_it_races():
    text = lines(  # two places are equal for a while, and so are those of two stores
        "st.shared.u32 [%mine], %t; bar.sync 0; xor.b32 %x1, %t, 32; st.shared.u32 [%mine], %x1;",
        "ld.shared.u32 %x1, [%other]; mul.wide.u32 %y1, %x1, 4; add.u64 %y1, %out, %y1;",
        "st.global.u32 [%y1], %t;",
    )
    found = run_rule(Rule("placed", text), text, "program").findings
    assert {finding.evidence["place"].split(" + ")[0] for finding in found} == {"buffer"}
