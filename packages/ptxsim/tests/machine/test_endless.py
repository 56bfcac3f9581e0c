"""Loops that never end get a verdict that names the loop; loops that others can end are given time."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import ptxsim
from ptxsim.machine.endless import Livelock

HEAD = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout) {
.reg .b32 %t, %c, %n, %sm, %x<8>; .reg .b64 %in, %out, %y<8>; .reg .pred %p, %q, %first;
.shared .align 16 .b8 buffer[1024];
mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %nctaid.x; mov.u32 %sm, buffer;
ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; setp.eq.u32 %first, %t, 0;
"""
ORDERS = ["program", "adverse", 5]
# a tile loop that never advances to the next tile: stores, barriers, but always the same
SAME_TILE = """
// @src kernel.py:10
mov.u32 %x0, %c;
TILE:
// @src kernel.py:12
st.shared.u32 [%sm], %t; bar.sync 0;
// @src kernel.py:14
ld.shared.u32 %x1, [%sm+0]; @%first st.global.u32 [%out], %x0; bar.sync 0;
setp.lt.u32 %p, %x0, 100;
// @src kernel.py:15
@%p bra TILE;
"""
# Triton's grid barrier: CTA 0 waits, with bar.sync in its loop, until all the others have arrived
GRID_BARRIER = """
@%first atom.global.add.u32 %x0, [%out], 1;
AGAIN:
bar.sync 0;
@%first atom.global.cas.b32 %x1, [%out], -1, -1;
@%first st.shared.u32 [%sm], %x1;
bar.sync 0;
ld.shared.u32 %x2, [%sm];
setp.lt.u32 %p, %x2, %n;
@%p bra AGAIN;
"""
# libcu++ on sm_80: a poll that counts, and reads a clock
COUNTING = """
@%first mbarrier.init.shared.b64 [%sm], 1; bar.sync 0;
@%first cp.async.ca.shared.global [%sm+16], [%in], 16;
@%first cp.async.mbarrier.arrive.noinc.shared.b64 [%sm];
mov.u32 %x0, 0;
AGAIN: mbarrier.test_wait.parity.shared.b64 %p, [%sm], 0;
add.u32 %x0, %x0, 1; mov.u64 %y0, %globaltimer;
@!%p bra AGAIN;
"""


def run(text: str, order="program", grid: int = 1, block: int = 64, **options):
    data, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    module = ptxsim.load(HEAD + text + "ret;\n}\n")
    return module.launch("k", grid=grid, block=block, args=[data, out], order=order, jobs=1, **options), out


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("order", ORDERS)
def test_a_loop_over_the_same_tile_is_named(order, checks):
    result, _ = run(SAME_TILE, order, checks=checks)
    finding = next(f for f in result.findings if f.kind == "deadlock")
    assert result.verdict == "error" and finding.severity == "error"
    assert "kernel.py:12 to 15" in finding.message and "warps 0, 1 never leave" in finding.message


# one lane of the first warp, for which the others wait, does work of its own in the loop
ONE_LANE = """
// @src kernel.py:10
mov.u32 %x0, %c; mov.u32 %x3, 0;
@%first mbarrier.init.shared.b64 [%sm+512], 1; bar.sync 0;
TILE:
// @src kernel.py:12
st.shared.u32 [%sm], %t; bar.sync 0;
@!%first bra BEHIND;
mbarrier.arrive.shared.b64 _, [%sm+512];
BEHIND:
WAIT: mbarrier.try_wait.parity.shared.b64 %q, [%sm+512], %x3;
@!%q bra WAIT;
xor.b32 %x3, %x3, 1;
bar.sync 0; setp.lt.u32 %p, %x0, 100;
// @src kernel.py:15
@%p bra TILE;
"""


@pytest.mark.parametrize("order", ORDERS[:2])
def test_lanes_that_wait_for_others_of_their_warp_do_not_keep_it_going(order):
    """They are released, reconverge, and the cluster is in its old state, in every iteration."""
    result, _ = run(ONE_LANE, order)
    finding = next(f for f in result.findings if f.kind == "deadlock")
    assert "kernel.py:12 to 15" in finding.message and "warps 0, 1 never leave" in finding.message


def test_the_same_loop_that_goes_on_to_the_next_tile_ends():
    result, out = run(SAME_TILE.replace("setp.lt", "add.u32 %x0, %x0, 1; setp.lt"))
    assert not [f for f in result.findings if f.kind == "deadlock"] and out[0] == 99


@pytest.mark.parametrize("order", ORDERS[:2])
def test_a_loop_of_instructions_that_each_change_something_is_named(order):
    """Such a loop uses up no turn by itself."""
    text = "@!%first bra OUT;\nAGAIN:\nmbarrier.init.shared.b64 [%sm], 1;\nbra AGAIN;\nOUT: bar.sync 0;\n"
    result, _ = run(text, order)
    finding = next(f for f in result.findings if f.kind == "deadlock")
    assert finding.severity == "error" and "warp 0 never leaves the loop" in finding.message


def test_a_run_longer_than_asked_for_is_incomplete():
    text = SAME_TILE.replace("setp.lt", "add.u32 %x3, %x3, 1; setp.lt")  # a counter: no state repeats
    result, _ = run(text, max_instructions=50_000)
    finding = next(f for f in result.findings if f.kind == "deadlock")
    assert finding.severity == "incomplete" and "max_instructions=50000" in finding.message
    assert finding.evidence["budget"] == 50_000
    assert "kernel.py:12 to 15" in finding.message


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "jump, options", [("bra AGAIN;", {}), ("@%p bra AGAIN;", {"max_instructions": 3000})]
)
def test_copies_under_way_do_not_keep_an_endless_loop_going(order, jump, options):
    """One of them can always complete. A loop that no jump leaves ends soon, others at the limit."""
    copy = "cp.async.ca.shared.global [%sm], [%in], 4; cp.async.commit_group;"
    text = f"setp.eq.u32 %p, %t, %t; AGAIN: add.u32 %x0, %x0, 1; {copy} bar.sync 0; {jump}\n"
    result, _ = run(text, order, **options)
    finding = next(f for f in result.findings if f.kind == "deadlock")
    assert finding.severity == ("incomplete" if options else "error")
    assert "warps 0, 1" in finding.message and result.stats["warp_instructions"] < 50_000


@pytest.mark.parametrize("checks", [True, False])
def test_a_run_that_has_ended_is_not_given_up(checks):
    result, out = run("@%first st.global.u32 [%out], 7;", block=32, max_instructions=5, checks=checks)
    assert not result.findings and out[0] == 7


def test_copies_of_known_tiles_or_of_none_are_counted():
    tile = ptxsim.TensorMap(np.zeros((64, 64), np.float16), box=(16, 16))
    tile.segment = 0
    livelock = Livelock(SimpleNamespace(executed=int), None)
    for at in range(1000):
        livelock.copies("load", tile, (16 * (at % 4), 0))
    assert not livelock.same_tiles() and len(livelock.copied) == 4
    for at in range(400):
        livelock.copies("load", tile, (64 + 16 * at, 0))
    assert livelock.same_tiles() and len(livelock.copied) == 4 and livelock.outside == 400
    livelock.copies("load", tile, (0, 32))
    assert not livelock.same_tiles() and livelock.outside == 0


def test_a_budget_is_a_positive_number():
    with pytest.raises(ValueError, match="max_instructions"):
        run("", max_instructions=0)


@pytest.mark.parametrize("order", ORDERS)
def test_ctas_that_poll_with_barriers_in_the_loop_wait_for_each_other(order):
    result, out = run(GRID_BARRIER, order, grid=6)
    assert not [f for f in result.findings if f.kind == "deadlock"] and out[0] == 6


def test_ctas_that_poll_for_one_that_never_comes_are_a_deadlock():
    result, _ = run(GRID_BARRIER.replace("setp.lt.u32 %p, %x2, %n", "setp.le.u32 %p, %x2, %n"), grid=6)
    assert [f for f in result.findings if f.kind == "deadlock"]


@pytest.mark.parametrize("order", ORDERS)
def test_pending_copies_complete_though_a_poll_counts_and_reads_a_clock(order):
    result, _ = run(COUNTING, order, block=32)
    assert result.verdict == "clean", result.findings


def test_a_poll_that_counts_for_ever_is_a_deadlock():
    result, _ = run(COUNTING.replace("[%sm], 0;", "[%sm], 1; setp.ne.u32 %p, %t, %t;"), block=32)
    assert any(f.kind == "deadlock" for f in result.findings)


@pytest.mark.parametrize("inside, ends", [("", True), ("ld.volatile.global.u32 %x1, [%out];", False)])
def test_a_long_loop_that_ends_is_no_wait(monkeypatch, inside, ends):
    """Work in registers has no effect that others see: only a warp that also polls waits for something that
    never comes.
    """
    monkeypatch.setattr("ptxsim.machine.watchdog.IMPATIENT", 500)
    monkeypatch.setattr("ptxsim.machine.watchdog.ENDLESS", 4000)
    loop = f"AGAIN: {inside} add.u32 %x0, %x0, 1; setp.lt.u32 %p, %x0, 100000; @%p bra AGAIN;"
    result, out = run(f"mov.u32 %x0, 0; {loop} @%first st.global.u32 [%out], %x0;", block=32)
    assert (out[0] == 100_000) == ends == (not result.findings)
