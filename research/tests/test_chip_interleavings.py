"""The programs sent to a chip, run on ptxsim: correct programs end in an outcome of the explorer in any
order.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim
from research.chip import interleavings
from research.every.explore import FILLED, explore
from research.every.programs import Program, program_of
from research.every.states import Values

HANDED_OVER = Program(((("expect", 0), ("load", 0, 0)), (("wait", 0, 0), ("ld", 0))), (1,), ())
WHO_IS_FIRST = Program(((("first", 0, 0), ("sync", 0), ("ld", 0)),) * 2, (), (2,))
NOBODY_ARRIVES = Program(((("wait", 0, 0),),), (1,), ())


def trial(program: Program, order) -> np.ndarray:
    """(1, WORDS): the output of one CTA."""
    out, sleeps = np.zeros(interleavings.WORDS, np.uint32), np.zeros(interleavings.STEPS, np.uint32)
    module = ptxsim.load(interleavings.module_of({1: program}))
    args = [np.arange(FILLED, FILLED + 4096, dtype=np.uint32), out, sleeps]
    module.launch("k1", grid=1, block=32 * len(program.warps), args=args, order=order, checks=False)
    return out[None]


def test_outcomes_are_what_each_warp_has_read():
    assert explore(HANDED_OVER, values=True).outcomes == {Values((), (0, FILLED), ())}
    assert explore(WHO_IS_FIRST, values=True).outcomes == {Values((), (1, 1)), Values((), (101, 101))}
    assert explore(HANDED_OVER).outcomes == set()


@pytest.mark.parametrize("seed", range(8_001_000_000, 8_001_000_040))
def test_right_programs_end_in_an_outcome_of_the_explorer(seed):
    state, truth = interleavings.judged(seed)
    if state != "right":
        return
    for order in ("program", "adverse", 7):
        found, stuck = interleavings.outcomes(program_of(seed), trial(program_of(seed), order))
        assert interleavings.compared(truth, found, stuck)["differs"] == ""


def test_a_wait_in_vain_differs_where_none_can_be():
    out = trial(HANDED_OVER, "program")
    out[0, 32] = interleavings.STUCK  # the sum of warp 1
    found, stuck = interleavings.outcomes(HANDED_OVER, out)
    assert (found, stuck) == (set(), 1)
    assert (
        interleavings.compared(explore(HANDED_OVER, values=True), found, stuck)["differs"] == "stands still"
    )
    assert interleavings.compared(explore(NOBODY_ARRIVES, values=True), found, stuck)["differs"] == ""


def test_an_outcome_that_no_interleaving_has_differs():
    truth = explore(HANDED_OVER, values=True)
    assert interleavings.compared(truth, {Values((), (0, 0), ())}, 0)["differs"].startswith("another outcome")
