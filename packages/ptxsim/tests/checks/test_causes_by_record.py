"""What is said of a barrier follows from its record: rival explanations that it rules out are not named."""

from __future__ import annotations

import pytest

from ptxsim.checks.barrier_history import BarrierHistory, Signals, Waits
from ptxsim.checks.diagnosis.running_ahead import _count
from ptxsim.isa.address_map import SHARED_START
from ptxsim.report.findings import Reporter


def record(count: int, threads: int, arrivals: int, waits: int) -> BarrierHistory:
    """A barrier with init(count): so many threads of warp 0 arrived so often in all, one warp waited."""
    history = BarrierHistory(0, 0, count)
    history.sources["arrive", 0, 7] = Signals((1 << threads) - 1, arrivals)
    history.waits[1] = Waits(0, 1, count=waits)
    return history


@pytest.mark.parametrize(
    ("count", "threads", "arrivals", "waits", "cause"),
    [
        (1, 1, 4, 2, "ahead-rounds"),  # one arrival a phase, four phases: two waits are missing
        (32, 32, 96, 1, "ahead-rounds"),
        (1, 2, 4, 2, "ahead"),  # two threads in each round of two: init(2)
        (16, 32, 64, 2, "ahead"),
        (32, 32, 64, 2, "ahead"),  # as many waits as rounds: not the loops
    ],
)
def test_the_count_is_blamed_only_where_it_is_wrong(count, threads, arrivals, waits, cause):
    reason = _count(record(count, threads, arrivals, waits))
    rounds = arrivals // threads if cause == "ahead-rounds" else arrivals
    assert reason.cause.id == cause and str(rounds) in reason.text


@pytest.mark.parametrize(
    ("offset", "name"),
    [(0, "full[0]"), (8, "full[1]"), (16, "full[2] (it has 2)"), (20, "shared memory + 20 B"),
     (32, "shared memory + 32 B")],
)  # fmt: skip
def test_a_slot_behind_an_array_is_named_as_one(offset, name):
    reporter = Reporter([("full", "uint64", SHARED_START, 16)])
    assert reporter.shared_name(SHARED_START + offset) == name
