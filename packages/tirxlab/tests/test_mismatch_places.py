"""Right numbers in the wrong lanes, rows or columns: `verify` says which belong where."""

from __future__ import annotations

import numpy as np
import pytest
from test_mismatch import SIZES, Problem


def test_the_lanes_that_an_mma_of_64_rows_leaves_out_are_known():
    problem = Problem((256, 128, 192), 7)
    D = np.full_like(problem.R, np.nan)
    lanes, rows = np.arange(0, 128, 32)[:, None] + np.arange(16), np.arange(64).reshape(4, 16)
    for first in range(0, 256, 128):
        D[first + lanes] = problem.R[first + rows]
    said = problem.said(D)
    assert "NaN in rows 16-31 of every 32; rows 32-47 hold 16-31" in said
    assert "is the MMA one of 64 rows" in said


@pytest.mark.parametrize("size", [2, 4, 8])
def test_pieces_that_lanes_store_to_others_rows_are_found(size):
    """Lane l stores columns from size * l on of each row, while its registers hold its own row."""
    problem, lanes = Problem((128, 128, 192), 8), min(32, 128 // size)
    D = problem.R.copy()
    for first in range(0, 128, lanes):
        part = problem.R[first : first + lanes, : lanes * size].reshape(lanes, lanes, size)
        D[first : first + lanes, : lanes * size] = part.swapaxes(0, 1).reshape(lanes, -1)
    assert f"D[0, {size}:{2 * size}] holds what belongs to D[1, 0:{size}]" in problem.said(D)


@pytest.mark.parametrize("axis", [0, 1])
def test_parts_of_a_tile_may_lack_other_k_tiles(axis):
    problem = Problem((128, 128, 320), 9)
    D = problem.R - problem.k_tile(1)
    second = (slice(64, 128), slice(None))[:: 1 - 2 * axis]
    D[second] = (problem.R - problem.k_tile(3))[second]
    said = problem.said(D)
    name = ("rows", "columns")[axis]
    assert f"the part of tile (0, 0) in {name} 0-63 lacks K tile 1, of 5" in said
    assert f"the part of tile (0, 0) in {name} 64-127 lacks K tile 3, of 5" in said


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
    [(0, "because a read, cast or copy comes too late?"), (1, "filled again before its contents were")],
)
def test_a_half_that_stands_in_both(half, words):
    """The previous iteration left it in the buffer, or the next one put it there too early."""
    problem = Problem(SIZES[-1], seed=3)
    halves = problem.R.reshape(problem.M, -1, 2, 64)
    assert words in problem.said(np.repeat(halves[:, :, [half]], 2, axis=2).reshape(problem.R.shape))
