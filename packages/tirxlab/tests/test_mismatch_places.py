"""What is said where rows or columns of a tile are right, or moved, by a pattern of their own."""

import numpy as np
import pytest
from test_mismatch import SIZES, Problem


@pytest.mark.parametrize(
    ("every", "words"),
    [(32, "only rows 5, 37, 69, 101 are right, of one lane"), (128, "only row 5 is right, of one thread")],
)
def test_rows_of_one_lane_alone_are_right(every, words):
    problem = Problem(SIZES[-1], seed=3)
    computed = np.full_like(problem.R, np.nan)
    computed[5::every] = problem.R[5::every]
    assert words in problem.said(computed)


@pytest.mark.parametrize(
    ("half", "words"),
    [(0, "as its read, cast or copy comes too late?"), (1, "filled again before what it holds")],
)
def test_a_half_that_stands_in_both(half, words):
    """The turn before left it in the buffer, or the turn behind put it there too early."""
    problem = Problem(SIZES[-1], seed=3)
    halves = problem.R.reshape(problem.M, -1, 2, 64)
    assert words in problem.said(np.repeat(halves[:, :, [half]], 2, axis=2).reshape(problem.R.shape))
