"""Random kernels without races: every path of the simulator leaves the same bytes and the same verdict.

The kernels come from research/truth: divergence, loops, barriers, copies (`kernels`), and the
synchronisation programs that the ground truth calls right (`generate`).
`research/truth/random_programs.py` runs more of them.
"""

import pytest

from research.truth.generate import correct_program
from research.truth.judge import truth_of
from research.truth.kernels import kernel_of
from research.truth.paths import differences, of_kernel, of_program


@pytest.mark.parametrize("seed", range(40))
def test_kernels(seed):
    assert differences(*of_kernel(kernel_of(seed))) == []


@pytest.mark.parametrize("seed", range(3))
def test_several_processes(seed):
    assert differences(*of_kernel(kernel_of(seed)), jobs=(1, 2), orders=("program", "adverse")) == []


RACES = {506, 522}  # programs in which the truth finds a race


@pytest.mark.parametrize("seed", sorted(set(range(500, 540)) - RACES))
def test_synchronisation_programs(seed):
    program = correct_program(seed).number()
    truth = truth_of(program, rounds=2)
    assert not (truth.may or truth.review), "add it to RACES"
    assert differences(*of_program(program)) == []


@pytest.mark.parametrize("seed", sorted(RACES))
def test_programs_that_are_left_out_have_races(seed):
    truth = truth_of(correct_program(seed).number(), rounds=2)
    assert truth.may or truth.review


def test_kernels_differ_and_loops_run():
    """The generator reaches the constructs that it exists for."""
    texts = "".join(kernel_of(seed).ptx for seed in range(40))
    for what in (
        "shfl.sync",
        "cp.async.bulk",
        "mbarrier.try_wait",
        "mapa",
        "redux",
        "red.shared",
        "wait_group 0",
    ):
        assert what in texts
    assert kernel_of(1).ptx == kernel_of(1).ptx != kernel_of(2).ptx


def test_a_difference_is_seen():
    module, shape, arrays, maps = of_kernel(kernel_of(1))
    count = iter(range(100))

    def changing():
        numbers, out = arrays()
        return numbers + next(count), out

    assert any("words differ" in line for line in differences(module, shape, changing, maps))
