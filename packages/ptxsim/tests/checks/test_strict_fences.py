"""What the fences .sc that a thread knows of hand on: of each other thread the latest, kept until a fence."""

import numpy as np

from ptxsim.checks.race.strict_fences import StrictFences


def clock(*epochs: int) -> np.ndarray:
    return np.array(epochs, np.int32)


def test_the_latest_known_fence_of_each_other_thread():
    fences = StrictFences(threads=3)
    assert not fences
    for thread, epoch, covered in ((0, 2, clock(9)), (0, 5, clock(9, 9)), (1, 1, clock(0, 0, 7))):
        fences.add(thread, epoch, (covered, covered))
    for known, thread, wanted in (
        ((1, 0, 4), 2, []),  # it comes after none of them
        ((4, 0, 4), 2, [9]),
        ((5, 1, 4), 2, [9, 9, 7]),
        ((5, 1, 4), 0, [0, 0, 7]),  # its own does not count
    ):
        assert [clocks.tolist() for clocks in fences.known(thread, clock(*known))] == [wanted] * 2
    fences.add(1, 3, (clock(1), clock(1)))
    assert fences.known(2, clock(0, 3, 0))[0].tolist() == [1]


def test_only_the_last_four_of_a_thread_are_remembered():
    fences = StrictFences(threads=2)
    for epoch in range(1, 6):
        fences.add(0, epoch, (clock(epoch), clock()))
    assert [len(fences.known(1, clock(epoch, 0))[0]) for epoch in (1, 2, 5)] == [0, 1, 1]
