"""Dominators and post-dominators against their definition, on random graphs, in both directions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxsim.lowering.cfg import EXIT, Block
from ptxsim.lowering.meeting_points import meeting_points, post_dominators
from ptxsim.timing.flow import analysed

MOST = 9  # blocks


@st.composite
def graphs(draw) -> list[list[int]]:
    """Successors of each block, including EXIT."""
    count = draw(st.integers(1, MOST))
    some = st.lists(st.integers(EXIT, count - 1), min_size=1, max_size=3, unique=True)
    return [draw(some) for _ in range(count)]


def blocks_of(leads: list[list[int]]) -> list[Block]:
    """Blocks of one instruction each."""
    return [Block(b, b + 1, after) for b, after in enumerate(leads)]


def reached(root: int, leads: dict[int, list[int]], without: int | None = None) -> set[int]:
    seen: set[int] = set()
    work = [root]
    while work:
        node = work.pop()
        if node != without and node not in seen:
            seen.add(node)
            work += leads[node]
    return seen


def immediate(root: int, leads: dict[int, list[int]]) -> dict[int, int]:
    """By definition: the last of the nodes without which the root does not reach a node."""
    nodes = reached(root, leads)
    cuts = {node: {a for a in nodes if node not in reached(root, leads, a)} - {node} for node in nodes}
    return {node: max(above, key=lambda a: len(cuts[a])) for node, above in cuts.items() if above}


@given(graphs())
def test_dominators_are_those_of_the_definition(leads):
    found = analysed(blocks_of(leads))
    wanted = immediate(0, {EXIT: [], **dict(enumerate(leads))})
    wanted.pop(EXIT, None)
    assert {b: p for b, p in found.parent.items() if b} == wanted


@given(graphs())
def test_post_dominators_are_those_of_the_reversed_graph(leads):
    """For every block that can reach the exit; for the others only that they have a reconvergence point."""
    posts = post_dominators(leads)
    back: dict[int, list[int]] = {b: [] for b in range(EXIT, len(leads))}
    for b, after in enumerate(leads):
        for node in after:
            back[node].append(b)
    for b, post in immediate(EXIT, back).items():
        assert posts[b] == post
    assert all(EXIT <= post < len(leads) for post in posts)


@given(graphs())
def test_lanes_meet_at_the_post_dominator_wherever_there_is_one(leads):
    meets = meeting_points(blocks_of(leads))
    assert all(post in (EXIT, meet) for post, meet in zip(post_dominators(leads), meets, strict=True))


@given(graphs())
def test_two_ways_at_least_lead_to_where_lanes_meet_that_stay(leads):
    ways = {EXIT: [], **dict(enumerate(leads))}
    meets = meeting_points(blocks_of(leads))
    for after, post, meet in zip(leads, post_dominators(leads), meets, strict=True):
        if len(after) > 1 and post == EXIT != meet:
            assert sum(meet in reached(s, ways) for s in after) > 1


RETURN_INSIDE = [[1, 3], [4, 2], [3], [4], [EXIT]]  # if (a) { if (b) return; .. } ..
WORK_AND_RETURN = [[1, 4], [2, 3], [EXIT], [4], [EXIT]]  # if (a) { if (b) { ..; return; } .. } ..
IN_A_LOOP = [[1], [2, 3], [4, 3], [1, 4], [EXIT]]  # do { if (a) { if (b) return; } .. } while (c);
TWO_HALVES = [[1, 3], [2, 5], [4], [5], [EXIT], [EXIT]]  # if (a) { if (b) return; ..; return; } ..


@pytest.mark.parametrize(
    "leads, leaving, meets",
    [
        (RETURN_INSIDE, {4}, {0: 3}),
        (WORK_AND_RETURN, {2}, {0: 4, 1: EXIT}),
        (WORK_AND_RETURN, {2, 4}, {0: EXIT, 1: EXIT}),
        (IN_A_LOOP, {4}, {1: 3, 2: EXIT, 3: EXIT}),
        (TWO_HALVES, {5}, {0: EXIT, 1: EXIT}),
    ],
    ids=["return inside", "work and return", "nothing to meet for", "in a loop", "two halves"],
)
def test_lanes_that_stay_meet_although_others_return(leads, leaving, meets):
    found = meeting_points(blocks_of(leads), leaving)
    assert {b: found[b] for b in meets} == meets
