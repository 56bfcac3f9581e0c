"""Ampere's rungs at the edges of a matrix: what they copy beyond it."""

from collections import Counter

import pytest

from ptxsim.timing.record import record
from research.time.ladders import rung
from tirxlab.forecast import launch_of


@pytest.mark.parametrize("number", [2, 6, 9])
def test_rows_beyond_the_edge_are_not_all_the_same(number):
    """A tile of 8 rows and 120 more: had these all been the last row, all SMs would wait for one line."""
    launch = launch_of(rung("ampere", number, (264, 256, 64)))
    last = launch.clusters[0] * launch.clusters[1] * launch.clusters[2] - 1
    asked = Counter(copy.address // 128 for copy in record(launch, last).copies.values())
    assert max(asked.values()) <= 4
