"""Which steps of a mutant count as those of its kernel (research/mutation/same_steps.py)."""

from __future__ import annotations

import pytest

from research.mutation.same_steps import ACCESS, FENCE, ORDER, PIN, Steps, at_least

A, B, C = ((ACCESS, place, 4 << 1 | 1) for place in (0, 4, 8))  # writes of three words
BAR, WAIT, ASYNC, TENSOR = (ORDER, "bar", 0), (ORDER, "wait", 1), (FENCE, "proxy"), (FENCE, "tcgen05", True)
ARRIVE = (PIN, "arrive", 1)

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
