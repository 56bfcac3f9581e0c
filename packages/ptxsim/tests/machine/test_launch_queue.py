"""Clusters that wait to start, and how running ones take them over."""

from ptxsim.machine.launch_queue import LaunchQueue


def queue(order="adverse", count=10) -> LaunchQueue:
    made = LaunchQueue()
    made.offer(range(count), order, room=4)
    return made


def test_what_is_undone_is_first_in_line_again():
    waiting = queue()
    assert waiting.begin(0) and waiting.take(0) == 1
    before = waiting.snapshot()
    assert [waiting.take(0), waiting.take(0)] == [2, 3]
    waiting.restore(before)
    assert list(waiting.left) == [2, 3, 4, 5, 6, 7, 8, 9]
    assert waiting.take(0) == 2 and not waiting.begin(2) and waiting.begin(3)


def test_a_share_that_is_given_back_can_be_taken_again():
    waiting = queue("program")  # four start by themselves, and each may take over two of the rest
    waiting.begin(0)
    before = waiting.snapshot()
    assert [waiting.take(0) for _ in range(3)] == [1, 2, None]
    waiting.restore(before)
    assert [waiting.take(0) for _ in range(3)] == [1, 2, None]
