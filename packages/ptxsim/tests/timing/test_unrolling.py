"""Iterations of a loop that ptxas joins, and loads that move up past earlier instructions."""

import pytest

from ptxsim.timing.execution import MemoryAccess, Run
from ptxsim.timing.ordering import hoisted
from ptxsim.timing.steps import JOINED, Global, Step, Stretch
from ptxsim.timing.unrolling import joined, renamed

LOAD = MemoryAccess(0, False, False, 128, 4, 1, lines=1)


def loop(iterations: int) -> list:
    """A load in row 0, and rows 1 to 5 with the backward branch."""
    return [LOAD, Run(1, 5)] * iterations


@pytest.mark.parametrize("iterations, places", [(1, []), (2, []), (3, [1, 3]), (6, [1, 3, 5, 9])])
def test_four_iterations_are_joined(iterations, places):
    assert sorted(joined(loop(iterations), [1] * 6)) == places


def test_long_iterations_and_outer_loops_are_left_alone():
    assert not joined(loop(6), [10] * 6)
    nest = [Run(0, 0), *[MemoryAccess(1, False, False, 128, 4, 1, lines=1), Run(2, 3)] * 3, Run(4, 6)]
    places = joined(nest * 3, [1] * 7)
    assert {place % len(nest) for place in places} <= {2, 4}


def load(name: str, *reads: str) -> Step:
    return Step(Global(4, 0, 1, False, 1, 0, 128, False), reads, (name,))


def run(reads=(), writes=(), ends=0, slots=4) -> Step:
    costs = slots, dict.fromkeys(writes, slots), ends, {w: frozenset(reads) for w in writes}, 0.0
    return Step(Stretch(*costs, dict.fromkeys(reads, 0)), tuple(reads), tuple(writes))


def test_each_load_has_a_register_of_its_own():
    first, _, second, reader = renamed([load("a"), run(["a"]), load("a"), run(["a"], ["b"])])
    assert first.writes != second.writes and reader.reads == second.writes
    assert set(reader.does.needed) == set(second.writes)
    assert reader.does.roots["b"] == frozenset(second.writes)


@pytest.mark.parametrize("ends, kinds", [(JOINED, [Global] * 4 + [Stretch] * 4), (1, [Global, Stretch] * 4)])
def test_loads_of_joined_turns_wait_together_and_those_of_others_do_not(ends, kinds):
    iterations = [step for n in range(4) for step in (load(f"a{n}"), run([f"a{n}"], ends=ends))]
    assert [type(step.does) for step in hoisted(iterations)] == kinds


def test_a_masked_load_that_moves_up_is_what_its_register_holds_afterwards():
    default = run([], ["a", "c"])
    (moved, passed) = hoisted([default, load("a")])
    assert type(moved.does) is Global and passed.writes == ("c",)
