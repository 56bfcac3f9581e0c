"""Kernels that the time model is tested on: each kind is right on the simulator, no round repeats another."""

from pathlib import Path

import numpy as np
import pytest

from dev.hw.timing import right
from dev.hw.timing.round import ROUNDS, kernels
from dev.hw.timing.run import load

SMALL = {s.name: s for s in load(Path(right.__file__).parent / "small" / "round-4.zip")}


@pytest.mark.parametrize("name", SMALL)
def test_a_kernel_of_the_fourth_round_is_right_at_a_small_size(name):
    assert right.wrong(SMALL[name], "adverse") == ""


def test_a_wrong_result_is_seen(monkeypatch):
    name = "running_sum_3x1100_512_w4"
    monkeypatch.setitem(right.REFERENCES, "running_sum", lambda v: {"out": np.cumsum(v["x"], axis=1) + 0.1})
    assert right.wrong(SMALL[name], "program").startswith("out: off by 0.1")


def test_every_kind_of_the_round_has_a_small_kernel():
    rungs = ("hopper", "ampere")  # the tracks' own tests run these
    kinds = {right.kind_of(s.name) for s in kernels(4) if not s.name.startswith(rungs)}
    assert kinds == {right.kind_of(name) for name in SMALL}


def test_no_kernel_is_in_two_rounds():
    names = [s.name for number in ROUNDS for s in kernels(number)]
    assert len(set(names)) == len(names) >= 160
