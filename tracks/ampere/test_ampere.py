"""The kernels of the Ampere track on the simulator, checked. Rungs that are not yet written are skipped."""

import pytest

from tracks.ampere.reference import TRACK
from tracks.common import run_checked, written

CASES = [(rung, size, options) for rung in TRACK.rungs for size, options in rung.cases]


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("rung, size, options", CASES, ids=lambda x: getattr(x, "number", str(x)))
def test_product(rung, size, options, order):
    if rung.number > 1 and not written(TRACK.kernels, rung):
        pytest.skip(f"rung {rung.number}, {rung.builder}, is not written yet")
    assert run_checked(TRACK, size, order, rung=rung, **options) == []
