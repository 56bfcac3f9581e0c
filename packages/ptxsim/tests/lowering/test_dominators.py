"""Dominators and post-dominators against their definition, on random graphs, in both directions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ptxsim.lowering.cfg import EXIT, Block, build_blocks
from ptxsim.timing.flow import analysed

MOST = 9  # blocks


@st.composite
def graphs(draw) -> list[list[int]]:
    """Successors of each block; EXIT among them."""
    count = draw(st.integers(1, MOST))
    some = st.lists(st.integers(EXIT, count - 1), min_size=1, max_size=3, unique=True)
    return [draw(some) for _ in range(count)]


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
    """By definition: of the nodes without which the root does not reach a node, the one that is last."""
    nodes = reached(root, leads)
    cuts = {node: {a for a in nodes if node not in reached(root, leads, a)} - {node} for node in nodes}
    return {node: max(above, key=lambda a: len(cuts[a])) for node, above in cuts.items() if above}


@given(graphs())
def test_dominators_are_those_of_the_definition(leads):
    found = analysed([Block(b, b + 1, after) for b, after in enumerate(leads)])
    wanted = immediate(0, {EXIT: [], **dict(enumerate(leads))})
    wanted.pop(EXIT, None)
    assert {b: p for b, p in found.parent.items() if b} == wanted


@given(graphs())
def test_post_dominators_are_those_of_the_reversed_graph(leads):
    """Of every block that can leave the kernel; of the others only that they have a place to meet."""
    targets = {b: [t if t != EXIT else len(leads) for t in after] for b, after in enumerate(leads)}
    blocks = build_blocks(len(leads), targets, dict.fromkeys(targets, False))
    back: dict[int, list[int]] = {b: [] for b in range(EXIT, len(leads))}
    for b, after in enumerate(leads):
        for node in after:
            back[node].append(b)
    for b, post in immediate(EXIT, back).items():
        assert blocks[b].post == post
    assert all(EXIT <= block.post < len(leads) for block in blocks)
