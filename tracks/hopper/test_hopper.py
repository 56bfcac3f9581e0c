"""The first kernel of the Hopper track on the simulator, every launch checked."""

import pytest

from tracks.common import run_checked
from tracks.hopper.reference import TRACK


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("size", [(64, 64, 64), (64, 64, 256), (128, 192, 80)], ids=str)
def test_product(size, order):
    assert run_checked(TRACK, size, order) == []
