"""Which steps of a mutant count as those of its kernel (research/mutation/same_steps.py)."""

from __future__ import annotations

from collections import namedtuple

import pytest

from research.mutation.same_steps import at_least
from research.mutation.steps import ACCESS, FENCE, ORDER, PIN, SETUP, Steps

A, B, C = ((ACCESS, place, 4 << 1 | 1) for place in (0, 4, 8))  # writes of three words
BAR, WAIT, ASYNC, TENSOR = (ORDER, "bar", 0), (ORDER, "wait", 1), (FENCE, "proxy"), (FENCE, "tcgen05", True)
ARRIVE = (PIN, "arrive", 1)
INIT, WAITS = (SETUP, "init", (0, 8), 1), (ORDER, "wait", (0, 8), 0)

ONE_THREAD = {
    "the same": ([A, BAR, B], [A, BAR, B], True),
    "a barrier more": ([A, B], [A, BAR, B], True),
    "a barrier less": ([A, BAR, B], [A, B], False),
    "a barrier later": ([A, BAR, B, C], [A, B, BAR, C], False),
    "a barrier more, between other accesses": ([A, B, C, BAR], [A, BAR, B, C, BAR], True),
    "a barrier moved between accesses": ([A, B, BAR, C], [A, BAR, B, C], False),
    "an access between, of another word": ([A, B, ARRIVE], [A, BAR, C, B, ARRIVE], False),
    "accesses to one word in another order": (
        [A, (ACCESS, 0, 4 << 1), ARRIVE],
        [(ACCESS, 0, 4 << 1), BAR, A, ARRIVE],
        False,
    ),
    "an arrival before the access": ([A, ARRIVE, B], [ARRIVE, A, B], False),
    "two fences exchanged": ([A, ASYNC, TENSOR, B], [A, TENSOR, ASYNC, B], True),
    "a fence behind the barrier": ([A, ASYNC, BAR, B], [A, BAR, ASYNC, B], False),
    "a wait more": ([WAIT, A], [BAR, WAIT, A], True),
    "another wait": ([WAIT, A], [BAR, A], False),
}


def steps(threads: dict[int, list]) -> Steps:
    made = Steps(None)
    made.threads = {(0, thread): list(what) for thread, what in threads.items()}
    return made


@pytest.mark.parametrize(("kernel", "mutant", "same"), ONE_THREAD.values(), ids=ONE_THREAD)
def test_steps_of_one_thread(kernel, mutant, same):
    assert at_least(steps({0: kernel}), steps({0: mutant})) == same


def warps(*roles: list) -> Steps:
    return steps({warp * 32 + lane: role for warp, role in enumerate(roles) for lane in range(32)})


def test_a_role_may_go_to_another_warp_of_its_warpgroup():
    load, idle, other = [A, ARRIVE], [BAR], [B]
    assert at_least(warps(load, idle), warps(idle, load))
    assert not at_least(warps(load, idle), warps(idle, other))
    assert not at_least(warps(load, idle), warps(load, load))
    assert not at_least(warps(load, *[idle] * 7), warps(*[idle] * 4, load, *[idle] * 3))


def test_a_role_of_one_lane_may_not():
    kernel = steps({0: [A, ARRIVE], 1: [B]})
    assert not at_least(kernel, steps({0: [A], 1: [ARRIVE, B]}))


class Split:
    """The part of a split that Steps needs."""

    cta, leader = 0, 0

    def __init__(self, warp: int, mask: int = 1):
        self.warp, self.mask = warp, mask


Arrival = namedtuple("Arrival", "number threads waits")
Fence = namedtuple("Fence", "inits")
AFTER = (FENCE, "tcgen05", True)


def noted(*events) -> Steps:
    """Steps of (name of an event, split, ..), in this order."""
    made = Steps(None)
    made.start(None)
    for name, *given in events:
        getattr(made, name)(None, *given)
    return made.timeline(None)


def fences_of(made: Steps, thread: int) -> list[tuple]:
    return [step for step in made.threads.get((0, thread), []) if step[0] == FENCE]


@pytest.mark.parametrize(("before", "kept"), [(0, 0), (32, 1)])
def test_a_fence_behind_nobodys_tensor_operation_is_no_step(before, kept):
    own, other = Split(0), Split(before // 32)
    made = noted(("tmem_free", other, 0, 32, 1), ("tcgen05_fence", own, True), ("tmem_free", own, 32, 32, 1))
    assert len(fences_of(made, 0)) == kept


def test_a_fence_counts_up_to_the_next_one():
    own, other = Split(0), Split(1)
    use, foreign = ("tmem_free", own, 0, 32, 1), ("tmem_free", other, 32, 32, 1)
    after = ("tcgen05_fence", own, True)
    assert fences_of(noted(after, use, after, foreign, use), 0) == [AFTER]
    assert fences_of(noted(after, use, after, use, foreign), 0) == []


def test_a_second_fence_for_the_same_operations_is_no_step():
    own, before = Split(0), ("tcgen05_fence", Split(0), False)
    made = noted(before, ("tmem_free", own, 0, 32, 1), before, before)
    assert len(fences_of(made, 0)) == 1
    made = noted(("fence", own, Fence(inits=True)))
    assert fences_of(made, 0) == []


def rounds(*numbers_and_warps: tuple) -> list[set]:
    """The names of the rounds of warp 0: (number, warps that wait, warps that only arrive) of each."""
    events = []
    for number, waiting, arriving in numbers_and_warps:
        events += [("bar_arrive", Split(w), Arrival(number, None, False)) for w in arriving]
        events += [("bar_arrive", Split(w), Arrival(number, None, True)) for w in waiting]
        events.append(("bar_complete", 0, number, []))
    return [step[2] for step in noted(*events).threads[0, 0]]


def test_a_round_of_a_cta_barrier_is_named_by_its_warps_where_nothing_can_mix():
    assert rounds((0, (0, 1, 2), ()), (1, (0, 1), ())) == [(0, 1, 2), (0, 1)]
    assert rounds((0, (0, 1, 2), ()), (0, (0, 1), ())) == [(0, 1, 2), (0, 1)]
    assert rounds((0, (0, 1), ()), (0, (0, 1, 2), ())) == [0, 0]  # warp 2 may come in the first round
    assert rounds((0, (0,), (1,)), (0, (0, 1), ())) == [0, 0]  # warp 1 may come twice in it


def test_another_lane_may_set_up_before_the_first_barrier_of_the_cta():
    init, late, idle = [INIT, ASYNC, BAR, WAITS], [BAR, INIT, ASYNC, WAITS], [ASYNC, BAR, WAITS]
    assert at_least(steps({0: init, 1: idle}), steps({0: idle, 1: init}))
    assert not at_least(steps({0: init, 1: idle}), steps({0: init, 1: init})), "twice"
    assert not at_least(steps({0: init, 1: idle}), steps({0: idle, 1: late})), "behind the barrier"
    assert not at_least(steps({0: init, 1: idle}), steps({0: [ASYNC, BAR, WAITS], 1: [INIT, BAR, WAITS]}))


def test_a_barrier_that_nobody_uses_may_be_set_up_too():
    unused = (SETUP, "init", (0, 16), 1)
    assert at_least(steps({0: [INIT, BAR, WAITS]}), steps({0: [INIT, unused, BAR, WAITS]}))
    assert not at_least(steps({0: [INIT, BAR, WAITS]}), steps({0: [BAR, WAITS]})), "this one is used"
