"""What is reported of a barrier follows from its record: rival explanations
that it rules out are not named.
"""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, lines, run_rule

from ptxsim.checks.barrier_history import BarrierHistory, Signals, Waits
from ptxsim.checks.diagnosis.running_ahead import _count
from ptxsim.isa.address_map import SHARED_START
from ptxsim.machine.global_memory import _past
from ptxsim.report.findings import Reporter


def record(count: int, threads: int, arrivals: int, waits: int) -> BarrierHistory:
    """A barrier with init(count): `threads` threads of warp 0 arrived `arrivals` times in all, one warp
    waited.
    """
    history = BarrierHistory(0, 0, count)
    history.sources["arrive", 0, 7] = Signals((1 << threads) - 1, arrivals)
    history.waits[1] = Waits(0, 1, count=waits)
    return history


@pytest.mark.parametrize(
    ("count", "threads", "arrivals", "waits", "cause"),
    [
        (1, 1, 4, 2, "ahead-rounds"),  # one arrival per phase, four phases: two waits are missing
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
     (32, "shared memory + 32 B"), (-96, "96 B before shared memory")],
)  # fmt: skip
def test_a_slot_behind_an_array_is_named_as_one(offset, name):
    reporter = Reporter([("full", "uint64", SHARED_START, 16)])
    assert reporter.shared_name(SHARED_START + offset) == name


@pytest.mark.parametrize(
    ("offset", "text"),
    [(16, "A + 16 B"), (1536, "D + 512 B"), (2048, "shared memory + 2048 B, just past the end of D"),
     (2112, "shared memory + 2112 B, 64 B past the end of D")],
)  # fmt: skip
def test_who_leaves_shared_memory_is_told_which_buffer_was_the_last(offset, text):
    reporter = Reporter([("A", "float16", SHARED_START, 1024), ("D", "float16", SHARED_START + 1024, 1024)])
    assert reporter.outside_shared(SHARED_START + offset) == text


@pytest.mark.parametrize(
    ("over", "straddles", "text"),
    [(0, False, "row 128 of A, which has 128 rows"), (128, True, "row 129 of A, which has 128 rows"),
     (0, True, "A[127, 64] or A[128, 0], and A is 128 x 64"), (6, True, "A[127, 67] or A[128, 3], and")],
)  # fmt: skip
def test_columns_behind_the_last_row_are_a_rival_where_a_part_is_inside(over, straddles, text):
    assert _past("A", over, straddles, (128, 64), 2).startswith(text)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("count", [64, 65])
def test_a_barrier_that_never_completes_is_not_what_should_have_been_waited_for(count, order):
    """The readers arrive on it; with one more arrival to come, a wait for it would hang."""
    text = lines(
        f"@%lead mbarrier.init.shared::cta.b64 [%bar], {count}; st.shared.u32 [%mine], %t; bar.sync 0;",
        "ld.shared.u32 %r1, [%other]; st.global.u32 [%myout], %r1;",
        "mbarrier.arrive.shared::cta.b64 _, [%bar]; st.shared.u32 [%mine], 1; bar.sync 0;",
        "ld.shared.u32 %r1, [%mine]; st.global.u32 [%myout+1024], %r1;",
    )
    found = run_rule(Rule("never-complete", text), text, order).findings
    told = [f.message for f in found if f.kind == "race"]
    assert told and all(("was not waited for" in text) == (count == 64) for text in told), told
