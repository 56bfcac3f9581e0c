"""A reader of shared memory that nobody has written came too early, whichever access ran first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxsim

SUMS = (Path(__file__).parents[2] / "docs" / "sums.ptx").read_text()  # its loop lacks a barrier


@pytest.mark.parametrize("order", ["program", "adverse", 3])
def test_a_reader_that_runs_ahead_of_the_first_write_is_told_to_wait_for_it(order):
    args = [np.ones(1024, np.float32), np.zeros(4, np.float32)]
    result = ptxsim.load(SUMS).launch("_Z4sumsPKfPf", grid=4, block=256, args=args, order=order)
    assert {found.kind for found in result.findings} == {"race"}
    assert {found.evidence["cause"] for found in result.findings} == {"not-ready"}
