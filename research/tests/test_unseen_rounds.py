"""Kernels that the time model is tested on: each kind is right on the simulator, no round repeats another."""

import functools
import re

import numpy as np
import pytest

from research.time import drawn, right, time_groups
from research.time.round import ROUNDS, kernels

ROUNDS_RUN = (4, 5)
SMALL = right.small(4) | right.small(5)


@functools.cache
def names_of(number: int) -> list[str]:
    return [saved.name for saved in kernels(number)]


def one_of_each() -> list:
    """The first kernel of each kind and type always runs; the others are slow."""
    known, made = set(), []
    for name in SMALL:
        key = right.kind_of(name), name.rpartition("_")[2]
        made.append(pytest.param(name, marks=[pytest.mark.slow] * (key in known)))
        known.add(key)
    return made


@pytest.mark.parametrize("name", one_of_each())
def test_a_kernel_of_a_round_is_right_at_a_small_size(name):
    assert right.wrong(SMALL[name], "adverse") == ""


def test_a_wrong_result_is_seen(monkeypatch):
    name = "running_sum_3x1100_512_w4"
    monkeypatch.setitem(right.REFERENCES, "running_sum", lambda v: {"out": np.cumsum(v["x"], axis=1) + 0.1})
    assert right.wrong(SMALL[name], "program").startswith("out: off by 0.1")


@pytest.mark.parametrize("number", ROUNDS_RUN)
def test_every_kind_of_a_round_has_a_small_kernel(number):
    rungs = ("hopper", "ampere")  # the tracks' own tests run these
    kinds = {right.kind_of(name) for name in names_of(number) if not name.startswith(rungs)}
    assert kinds == {right.kind_of(name) for name in right.small(number)}


def test_no_kernel_is_in_two_rounds():
    names = [name for number in ROUNDS for name in names_of(number)]
    assert len(set(names)) == len(names) >= 250


def test_the_fifth_round_has_the_rungs_that_were_drawn():
    """Sizes come from the seed, not from a person."""
    names = {name for name in names_of(5) if name.startswith(("hopper", "ampere"))}
    drawn_names = {
        f"{track}{number}_{m}x{n}x{k}_bfloat16"
        for track, numbers, (m, n, k) in drawn.ladders()
        for number in numbers
    }
    assert names == drawn_names


def test_a_draw_hangs_on_nothing_but_its_name():
    first = drawn.product("one", (64, 64, 64), (8e9, 30e9))
    drawn.product("another", (8, 8, 8), (8e9, 30e9))
    assert drawn.product("one", (64, 64, 64), (8e9, 30e9)) == first
    assert 8e9 <= 2 * first[0] * first[1] * first[2] <= 30e9 and all(extent % 64 == 0 for extent in first)


@pytest.mark.parametrize("number", ROUNDS)
def test_every_kernel_of_a_round_is_in_one_group_of_the_report(number):
    named = {title: start for title, start in time_groups.GROUPS.items() if start}
    for name in names_of(number):
        assert sum(bool(re.match(start, name)) for start in named.values()) == 1, name


def test_what_is_known_in_kind_is_neither_new_nor_plain():
    *_, (_, new), (_, known) = time_groups.groups(5).items()
    names = names_of(5)
    plain = {name for name in names if name.startswith("plain")}
    assert {n for n in names if re.match(known, n)} == {n for n in names if not re.match(new, n)} - plain
