"""A repeated launch is not run again: same outcome, same memory, and only if nothing differs."""

import numpy as np
import pytest

from ptxsim.driver.repeats import MOST, Repeats


class Loop:
    """A program that launches `kernel`, which changes `memory`, as the device does."""

    def __init__(self, kernel, memory, seconds=1.0):
        self.repeats, self.kernel, self.memory, self.seconds, self.ran = Repeats(), kernel, memory, seconds, 0

    def launch(self, key="k"):
        known = self.repeats.find(key, self.memory)
        if known is None:
            self.ran += 1
            self.kernel(self.memory)
            known = f"run {self.ran}"
            self.repeats.keep(key, known, self.memory, self.seconds)
        return known


def doubled(memory):
    memory[64][:] = 2 * memory[0]


def counted(memory):
    memory[64][0] += 1


def fresh():
    return {0: np.arange(8, dtype=np.uint8), 64: np.zeros(8, np.uint8)}


def test_a_loop_of_equal_launches_runs_until_nothing_changes():
    loop = Loop(doubled, fresh())
    assert [loop.launch() for _ in range(6)] == ["run 1", "run 2", "run 2", "run 2", "run 2", "run 2"]
    assert loop.memory[64].tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


@pytest.mark.parametrize("times", [1, 2, 3, 7])
def test_changes_are_made_again(times):
    """A counter that the program resets before each launch, as is done for atomics."""
    loop = Loop(counted, fresh())
    for _ in range(times):
        loop.memory[64][:] = 0
        loop.launch()
        assert loop.memory[64][0] == 1
    assert loop.ran == min(times, 2)


@pytest.mark.parametrize("change", [
    lambda loop, i: loop.memory[0].__setitem__(3, i),  # another input
    lambda loop, i: loop.memory.update({128 + 64 * i: np.zeros(4, np.uint8)}),  # another allocation
    lambda loop, i: loop.memory[64].__setitem__(7, 100 + i),  # the output, which a kernel might read
])  # fmt: skip
def test_what_differs_runs(change):
    loop = Loop(doubled, fresh())
    for i in range(20):
        change(loop, i)
        loop.launch()
        assert loop.memory[64].tolist() == (2 * loop.memory[0]).tolist()
    assert loop.ran == 20


def test_other_arguments_run():
    loop = Loop(counted, fresh())
    assert len({loop.launch(key) for key in "abcdefgh"}) == 8


@pytest.mark.parametrize("memory, seconds", [
    (fresh(), 0.0),  # faster to run than to compare
    ({0: np.zeros(MOST // 2, np.uint8), 64: np.zeros(MOST // 2 + 1, np.uint8)}, 9.0),  # too much memory
])  # fmt: skip
def test_what_does_not_pay_runs(memory, seconds):
    loop = Loop(lambda memory: None, memory, seconds)
    for _ in range(5):
        loop.launch()
    assert loop.ran == 5
