"""Rival repairs: indices are blamed only if shifting one side by a constant makes both sides agree."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ptxsim.checks.barrier_history import BarrierHistory, History, Signals, Waits
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.excess_arrivals import again_too_early
from ptxsim.checks.diagnosis.rivals import one_slot, shifted
from ptxsim.checks.diagnosis.running_ahead import uneven
from ptxsim.frontend.ast import Instr, Location
from ptxsim.isa.address_map import SHARED_START
from ptxsim.report.findings import Reporter

SIGNALLER, WAITER = 0, 1


def place(index: int) -> tuple[int, int]:
    return 0, SHARED_START + 8 * index


def record(depth: int, signals: list[int], waits: list[int], count: int = 1, threads: int = 1):
    """The case of a ring `full`: the elements that one warp signals and another waits for."""
    reporter = Reporter([("full", "uint64", SHARED_START, 8 * depth)])
    history = History(None, reporter)
    for index in range(depth):
        barrier = history.barriers[place(index)] = BarrierHistory(0, 0, count)
        if index in signals:
            barrier.sources["arrive", SIGNALLER, 3] = Signals((1 << threads) - 1, threads)
        if index in waits:
            barrier.waits[WAITER] = Waits(0, 1, rows={5})
    history.signalled[SIGNALLER] = [place(index) for index in signals]
    history.awaited[WAITER] = [place(index) for index in waits]
    instrs = [Instr(None, "", (), (), 0, "", Location(10 + row)) for row in range(8)]
    cluster = SimpleNamespace(
        bus=SimpleNamespace(observers=[history]), warps_per_cta=4, ctas=1, waits={}, mbarriers={},
        program=SimpleNamespace(instrs=instrs, by_row=dict(enumerate(instrs)), several_files=False),
        launch=SimpleNamespace(program=type("Text", (), {"by_row": {}, "instrs": ()}), shared_offsets={}),
    )  # fmt: skip
    return Case(cluster, reporter)


RINGS = [(depth, by) for depth in range(2, 7) for by in range(depth)]


@pytest.mark.parametrize("depth, by", RINGS)
@pytest.mark.parametrize("side", ["signal", "wait"])
def test_a_ring_that_is_apart_all_along(depth, by, side):
    straight, moved = ([(n + d) % depth for n in range(3 * depth)] for d in (0, by))
    case = record(depth, *((moved, straight) if side == "signal" else (straight, moved)))
    found = shifted(case, place(0))
    assert (found is not None) == (by != 0)
    if found is not None:
        assert found.cause.id == "shifted" and f"always {min(by, depth - by)} apart" in found.text
        assert "(line 13)" in found.text and "(line 15)" in found.text


WALKS = {
    "a stage that is never moved on": ([0, 1, 2, 0, 1], [1]),
    "a stage moved on twice": ([0, 1, 2, 0, 1, 2], [0, 2, 1, 0, 2, 1]),
    "one wait that is left out": ([0, 1, 2, 0, 1, 2], [1, 2, 0, 2, 1, 0]),
    "nobody waits": ([0, 1, 2], []),
}


@pytest.mark.parametrize("signals, waits", WALKS.values(), ids=WALKS)
def test_other_mistakes_are_no_shift(signals, waits):
    assert shifted(record(3, signals, waits), place(0)) is None


def two_rings(depth: int, commits: list[int], waits: list[int]):
    """(case, element 0 of `free`): a warp waits for elements of `full` and commits to those of `free`."""
    start, free = SHARED_START, SHARED_START + 8 * depth
    reporter = Reporter([("full", "uint64", start, 8 * depth), ("free", "uint64", free, 8 * depth)])
    history = History(None, reporter)
    for index in range(depth):
        full = history.barriers[0, start + 8 * index] = BarrierHistory(0, 0, 1)
        back = history.barriers[0, free + 8 * index] = BarrierHistory(0, 0, 1)
        full.sources["arrive", SIGNALLER, 2] = Signals(1, max(1, waits.count(index)), announces=True)
        back.waits[SIGNALLER] = Waits(0, 1, rows={4})
        if index in commits:
            back.sources["commit", WAITER, 3] = Signals(1, commits.count(index))
        if index in waits:
            full.waits[WAITER] = Waits(0, 1, rows={5}, count=waits.count(index))
    cluster = record(1, [], []).cluster
    cluster.bus.observers[:] = [history]
    return Case(cluster, reporter), (0, free)


@pytest.mark.parametrize("depth", [2, 3, 4, 6])
@pytest.mark.parametrize("rounds", [2, 3, 5, 8])
def test_signals_that_stay_at_one_element_are_told(depth, rounds):
    walk = [n % depth for n in range(rounds)]
    for stays in (False, True):
        case, free = two_rings(depth, [0] * rounds if stays else walk, walk)
        found = one_slot(case, free)
        assert (found is not None) == stays
        if stays:
            assert f"commits to free[0] each time (line 13, {rounds} times)" in found.text


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_a_signal_that_no_wait_stands_in_front_of_is_told(depth, left_out):
    commits = [n % depth for n in range(3 * depth + 2)]
    waits = commits[left_out:]
    case, free = two_rings(depth, commits, waits)
    found = uneven(case, free)
    assert (found is not None) == (left_out > 0)
    if found is not None:
        assert f"has signalled free {len(commits)} times" in found.text
        assert f"for its answer, full, {len(waits)} times" in found.text


@pytest.mark.parametrize(
    "count, threads, waits, cause",
    [
        (1, 1, [0, 1], "arrives-again"),
        (1, 1, [], "ahead-unwaited"),
        (1, 2, [0, 1], None),
        (2, 2, [0, 1], "arrives-again"),
    ],
)
def test_a_count_that_has_room_for_every_thread_is_right(count, threads, waits, cause):
    case = record(2, [0, 1], waits, count, threads)
    found = again_too_early(case, place(0))
    assert (found.cause.id if found else None) == cause
