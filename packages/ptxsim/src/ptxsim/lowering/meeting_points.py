"""Where lanes that part at a branch meet again.

At the branch's immediate post-dominator, as on chips (BSSY and BSYNC of the machine code). Lanes that leave
the kernel on the way are not waited for: the others meet as if there were no early `ret`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ptxsim.lowering.cfg import EXIT, Block, dominators, reverse_postorder


def meeting_points(blocks: list[Block], leaving: Collection[int] = ()) -> list[int]:
    """Of each block the one where lanes meet that part at its end; EXIT if they only meet to leave.

    leaving: blocks that do nothing but leave the kernel. Lanes that would meet there do not wait: barriers
    must not wait for them.
    """
    leads = [list(dict.fromkeys(EXIT if s in leaving else s for s in block.next)) for block in blocks]
    meets = post_dominators(leads)
    if EXIT in (meets[b] for b, successors in enumerate(leads) if len(successors) > 1):
        for staying, posts in _without_early_exits(leads):
            for b, successors in staying.items():
                if meets[b] == EXIT and sum(s in posts for s in successors) > 1:
                    meets[b] = posts[b]
    return meets


def _without_early_exits(leads: list[list[int]]) -> Iterator[tuple[dict[int, list[int]], dict[int, int]]]:
    """The ways of lanes that stay, as successors of blocks and post-dominators: first of the blocks from
    which the end of the kernel is reached, the one that most blocks lead to; of the rest, those that lead to
    its end, and so on; at last of loops that end by conditional exits alone.
    """
    rest = set(range(len(leads)))
    while rest:
        ends = [b for b in rest if leads[b] == [EXIT]]
        staying = {b: [s for s in leads[b] if s != EXIT] for b in rest}
        if ends:
            back = _reversed(staying)
            staying[max(ends, key=lambda b: len(reverse_postorder(b, back)))] = [EXIT]
            posts = _solved(staying)
        else:
            posts = dict(enumerate(post_dominators([staying.get(b, [EXIT]) for b in range(len(leads))])))
        yield {b: staying[b] for b in rest if b in posts}, posts
        rest = {b for b in rest if b not in posts}


def post_dominators(leads: list[list[int]]) -> list[int]:
    """The immediate post-dominator of each block, by the blocks that follow each. A way into a loop without
    an exit does not count for the blocks before it: lanes outside wait for those that come back.
    """
    heads: dict[int, int] = {}
    post = _solved(dict(enumerate(leads)))
    if len(post) <= len(leads):  # EXIT is one of them: some block has no way out
        ways, heads = _with_ways_out(leads)
        post = _solved(dict(enumerate(ways))) | post
    meets = [post.get(b, EXIT) for b in range(len(leads))]
    return [heads.get(meet, meet) for meet in meets]


def _solved(leads: dict[int, list[int]]) -> dict[int, int]:
    """Immediate post-dominators of the blocks from which a way leads to the exit: the dominators of the
    reversed graph. leads: successors of each block.
    """
    return dominators(reverse_postorder(EXIT, _reversed(leads)), leads)


def _reversed(leads: dict[int, list[int]]) -> dict[int, list[int]]:
    back: dict[int, list[int]] = {b: [] for b in (EXIT, *leads)}
    for b, successors in leads.items():
        for s in successors:
            back[s].append(b)
    return back


def _with_ways_out(leads: list[list[int]]) -> tuple[list[list[int]], dict[int, int]]:
    """Successors of each block, where the jumps back to the head of a loop without an exit pass a node of its
    own that also leads to the exit: lanes that part inside the loop meet at its head, whichever jump they
    take. And the head that each such node stands for.
    """
    heads: dict[int, int] = {}
    ways, count = [list(successors) for successors in leads], len(leads)
    while True:
        inside = set(range(count)) - set(reverse_postorder(EXIT, _reversed(dict(enumerate(ways)))))
        if not inside:
            return ways, heads
        head = min(ways[max(b for b in inside if min(ways[b]) <= b)])
        heads[len(ways)] = head
        for b in range(head, count):
            ways[b] = [len(ways) if s == head else s for s in ways[b]]
        ways.append([head, EXIT])
