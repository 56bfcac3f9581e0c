"""The first kernel of the Ampere track on the simulator, every launch checked."""

import pytest

from tracks.ampere.reference import TRACK
from tracks.common import run_checked


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("size", [(64, 64, 64), (64, 64, 256), (128, 192, 80)], ids=str)
def test_product(size, order):
    assert run_checked(TRACK, size, order) == []
