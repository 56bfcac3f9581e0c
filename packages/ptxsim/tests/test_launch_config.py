"""The request for a launch: extents of any length, launches that no chip can run; it is immutable."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim
from ptxsim.launch_config import LaunchConfig, RunConfig, extents

GOOD = {"grid": 4, "block": 32, "cluster": 2, "shared_bytes": 0}
WRONG = {  # change of a valid launch -> part of the message
    "block of 2048": ({"block": 2048}, "a CTA has at most 1024"),
    "odd grid": ({"grid": 3}, "not a multiple of cluster"),
    "cluster of 32": ({"grid": 32, "cluster": 32}, "at most 16"),
    "too much shared memory": ({"shared_bytes": 1 << 20}, "B of dynamic shared memory"),
    "four extents": ({"grid": (2, 1, 1, 1)}, "up to three positive extents"),
    "grid of 2^31": ({"grid": 2**31}, "has an extent above"),
    "65,536 rows of CTAs": ({"grid": (2, 65536)}, "has an extent above"),
    "block 65 deep": ({"block": (1, 1, 65)}, "has an extent above"),
    "no block": ({"block": 0}, "up to three positive extents"),
    "no instructions": ({"max_instructions": 0}, "max_instructions is a positive number"),
}


def test_a_good_launch():
    config = LaunchConfig.of(**GOOD)
    assert (config.grid, config.threads, config.ctas_per_cluster) == ((4, 1, 1), 32, 2)
    assert config.clusters == (2, 1, 1)


@pytest.mark.parametrize("changed, words", WRONG.values(), ids=WRONG)
def test_what_no_chip_can_launch(changed, words):
    with pytest.raises(ValueError, match=words):
        LaunchConfig.of(**GOOD | changed)


@pytest.mark.parametrize(
    "shape, wanted", [(2, (2, 1, 1)), ((2, 3), (2, 3, 1)), (np.array([1, 2, 3]), (1, 2, 3))]
)
def test_extents(shape, wanted):
    assert extents(shape) == wanted


@pytest.mark.parametrize("config, field", [(LaunchConfig.of(**GOOD), "grid"), (RunConfig(), "order")])
def test_configs_never_change(config, field):
    with pytest.raises(FrozenInstanceError):
        setattr(config, field, None)
    assert replace(config, **{field: getattr(config, field)}) == config


@pytest.mark.parametrize("given, wanted", [(1, 2), (2, 2), (4, 4)])
def test_the_kernel_may_ask_for_a_cluster(given, wanted):
    text = f"{HEAD}.visible .entry k() .reqnctapercluster 2, 1, 1 {{ ret; }}"
    launch = ptxsim.load(text).prepare("k", 4, 32, given, 0, [])
    assert launch.config.cluster == (wanted, 1, 1)
