"""Bytes that never come are reported as missing, even if copies to the next barrier would follow."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from truth import ORDERS, Rule, check_kept, lines, run_rule, wait

from ptxsim.checks.barrier_history import BarrierHistory, Origin
from ptxsim.checks.diagnosis.deadlock.missing_bytes import loads_of_each_place


def copy(at: int) -> str:
    fetch = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    return f"@%lead {fetch} [%sm+{16 * at}], [%in], 16, [%bar+{at}];"


RULE = Rule(
    "bytes",
    lines(
        "@%lead mbarrier.init.shared::cta.b64 [%bar], 1;",
        "@%lead mbarrier.init.shared::cta.b64 [%bar+8], 1;",
        "fence.mbarrier_init.release.cluster; bar.sync 0;",
        "@!%lead bra END; mov.u32 %x2, 0;",
        "@%lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;",
        copy(0),
        "ROUND:",
        "@%lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar+8], 16;",
        copy(8),
        wait("%x2", 8),
        wait(0),
        "add.u32 %x2, %x2, 1; setp.lt.u32 %p, %x2, 2; @%p bra ROUND;",
        "END:",
    ),
    (copy(0), ""),
)


@pytest.mark.parametrize("order", ORDERS)
def test_both_copies_are_clean(order):
    check_kept(RULE, order)


@pytest.mark.parametrize("order", ORDERS)
def test_the_missing_copy_is_told_by_its_bytes(order):
    result = run_rule(RULE, replace(RULE).broken, order)
    causes = {f.evidence.get("cause") for f in result.findings}
    assert causes & {"bytes", "bytes-announced"} and not causes & {"self-wait", "ring"}
    assert any("16 B" in f.message for f in result.findings)


def told(at: int) -> str:
    """A copy to one of two barriers, whose bytes are announced afterwards."""
    return lines(
        f"{copy(at)} // to {at}", f"@%lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar+{at}], 16;"
    )


TILES = Rule(
    "bytes-to-the-next-barrier",
    lines(
        *(f"@%lead mbarrier.init.shared::cta.b64 [%bar+{at}], 1;" for at in (0, 8, 16)),
        "fence.mbarrier_init.release.cluster; bar.sync 0;",
        "mov.u32 %x2, 0; @%lead bra LOADS; @%w1 bra READS; bra END;",
        "LOADS:",
        told(0).replace("to 0", "first"),
        told(8),
        wait(0, 16),
        told(0),
        told(8),
        "bra END;",
        "READS:",
        wait("%x2", 0),
        wait("%x2", 8),
        "bar.warp.sync -1; setp.eq.u32 %q, %t, 32; @%q mbarrier.arrive.shared::cta.b64 _, [%bar+16];",
        "add.u32 %x2, %x2, 1; setp.lt.u32 %p, %x2, 2; @%p bra READS;",
        "END:",
    ),
    ("[%bar+0]; // first", "[%bar+8]; // first"),
)


@pytest.mark.parametrize("order", ORDERS)
def test_copies_to_their_own_barriers_are_clean(order):
    check_kept(TILES, order)


@pytest.mark.parametrize("order", ORDERS)
def test_bytes_that_went_to_the_next_barrier_are_missed_at_their_own(order):
    """Although the next tile would load to both."""
    result = run_rule(TILES, TILES.broken, order)
    assert result.findings[0].kind == "tx-count", [str(f) for f in result.findings]
    assert "expected 16 B" in result.findings[0].message
    assert "+ 8200 B of CTA 0 got 16 B that nobody announced" in result.findings[0].message


FILL = "@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%sm], [%in], 16, [%bar];"
EMPTY = wait("%x3", 8)
ROUNDS = Rule(
    "a-place-that-is-filled-twice",
    lines(
        "@%lead mbarrier.init.shared::cta.b64 [%bar], 1;",
        "@%lead mbarrier.init.shared::cta.b64 [%bar+8], 1;",
        "fence.mbarrier_init.release.cluster; bar.sync 0; mov.u32 %x2, 0; mov.u32 %x3, 1;",
        "setp.eq.u32 %q, %t, 32; @%q bra READER; @!%lead bra END;",
        f"FILLER: {EMPTY} // until it has been read",
        f"{FILL} xor.b32 %x3, %x3, 1; add.u32 %x2, %x2, 1; setp.lt.u32 %p, %x2, 2; @%p bra FILLER; bra END;",
        "READER: mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;",
        f"{wait('%x2')} ld.shared.u32 %r0, [%sm]; mbarrier.arrive.shared::cta.b64 _, [%bar+8];",
        "add.u32 %x2, %x2, 1; setp.lt.u32 %p, %x2, 2; @%p bra READER;",
        "END:",
    ),
    (f"{EMPTY} // until it has been read", ""),
)


@pytest.mark.parametrize("order", ORDERS)
def test_a_place_that_has_been_read_is_filled_again(order):
    check_kept(ROUNDS, order)


def test_a_place_that_is_filled_twice_in_a_phase_is_told_so():
    found = [str(f) for f in run_rule(ROUNDS, ROUNDS.broken, "program").findings]
    assert any("16 B too many" in f and "each of its copies came 2 times" in f for f in found)
    assert any("gets 32 B, since each of its copies came 2 times" in f for f in found)


ASK = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%sm], [%bar];"
ANSWERS = lines(
    "@%lead mbarrier.init.shared::cta.b64 [%bar], 1;",
    "@%lead mbarrier.init.shared::cta.b64 [%bar+8], 2;",
    "fence.mbarrier_init.release.cluster; bar.sync 0; mov.u32 %x2, 0;",
    "setp.eq.u32 %q, %t, 32; @%q bra READER; @!%lead bra END;",
    f"{ASK} {wait(0, 8)} {ASK} bra END;",
    "READER: mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;",
    f"{wait('%x2')} mbarrier.arrive.shared::cta.b64 _, [%bar+8];",
    "add.u32 %x2, %x2, 1; setp.lt.u32 %p, %x2, 2; @%p bra READER;",
    "END:",
)


@pytest.mark.parametrize("order", ORDERS)
def test_an_answer_whose_request_waits_is_not_what_is_missing(order):
    (found,) = [
        f for f in run_rule(Rule("answers", ANSWERS), ANSWERS, order).findings if f.severity == "error"
    ]
    assert found.kind == "deadlock" and "only 1 of 2 arrivals came" in found.message
    assert "executes clusterlaunchcontrol.try_cancel" in found.message


def test_bytes_of_a_load_are_not_those_of_an_answer():
    load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%sm+64], [%in], 64, [%bar+16];"
    text = ANSWERS.replace(
        "fence.mbarrier", "@%lead mbarrier.init.shared::cta.b64 [%bar+16], 1; fence.mbarrier"
    )
    text = text.replace(ASK, f"{load} {ASK}", 1)
    found = [str(f) for f in run_rule(Rule("answers", text), text, "program").findings]
    assert any("deadlock" in f and "only 1 of 2 arrivals came" in f for f in found), found
    assert not any("16 B too few" in f for f in found), found


TO_BOTH = (
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
    "[%sm], [%in], 16, [%bar], %rs;"
)
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;"
BOTH = lines(
    "@%lead mbarrier.init.shared::cta.b64 [%bar], 1; fence.mbarrier_init.release.cluster;",
    ".reg .b16 %rs; mov.b16 %rs, 3; barrier.cluster.arrive; barrier.cluster.wait;",
    "setp.ne.u32 %p, %rank, 0; @!%lead bra MEET; @%p bra MEET;",
    *(f"{EXPECT} {TO_BOTH} {wait(parity)}" for parity in (0, 1)),
    "MEET: barrier.cluster.arrive; barrier.cluster.wait; @!%lead bra END;",
    f"{EXPECT} {wait(0)}",
    "END:",
)


@pytest.mark.parametrize("order", ORDERS)
def test_bytes_for_a_barrier_that_is_waited_for_are_not_misdirected(order):
    found = [str(f) for f in run_rule(Rule("both", BOTH, cluster=2), BOTH, order).findings]
    assert any("16 B too many" in f for f in found), found
    assert not any("where nobody waits" in f for f in found)


def test_rows_of_one_gather_are_no_repetition():
    """Four rows share the place of their copy, but each has a place of its own."""
    rows = [Origin("load", 1, 0, 7, 0, 1024, 128, 1024 + 128 * row) for row in range(4)]
    for copies in (1, 2):
        barrier = SimpleNamespace(announced=512, delivered=512 * copies)
        history = BarrierHistory(0, 0, 1, parts=rows * copies)
        cluster = SimpleNamespace(mbarriers=SimpleNamespace(last={(0, 0): barrier}.get))
        assert loads_of_each_place(cluster, (0, 0), history) == copies
