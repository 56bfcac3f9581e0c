"""Where lanes that diverge at a branch meet again.

They meet at the branch's immediate post-dominator, as on chips (BSSY and BSYNC in machine code). The others
do not wait for lanes that exit the kernel on the way: they meet as if there were no early `ret`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ptxsim.lowering.cfg import EXIT, Block, dominators, reverse_postorder


def meeting_points(blocks: list[Block], leaving: Collection[int] = ()) -> list[int]:
    """For each block, the block where lanes that diverge at its end meet; EXIT if they meet only at the exit.

    leaving: blocks that do nothing but exit the kernel. Lanes do not wait to meet there, because barriers
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
    """The control flow of lanes that do not exit early, as (successors of blocks, post-dominators). First for
    the blocks that lead to the end of the kernel (the end that most blocks lead to), then for the rest with
    their own end, and so on; last for loops that end only by conditional exits.
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
    """The immediate post-dominator of each block. leads: the successors of each block. A path into a loop
    without an exit does not count for the blocks before the loop: lanes outside wait for those that return.
    """
    heads: dict[int, int] = {}
    post = _solved(dict(enumerate(leads)))
    if len(post) <= len(leads):  # EXIT is one of them: some block has no way out
        ways, heads = _with_ways_out(leads)
        post = _solved(dict(enumerate(ways))) | post
    meets = [post.get(b, EXIT) for b in range(len(leads))]
    return [heads.get(meet, meet) for meet in meets]


def _solved(leads: dict[int, list[int]]) -> dict[int, int]:
    """Immediate post-dominators of the blocks from which the exit can be reached: the dominators of the
    reversed graph. leads: the successors of each block.
    """
    return dominators(reverse_postorder(EXIT, _reversed(leads)), leads)


def _reversed(leads: dict[int, list[int]]) -> dict[int, list[int]]:
    back: dict[int, list[int]] = {b: [] for b in (EXIT, *leads)}
    for b, successors in leads.items():
        for s in successors:
            back[s].append(b)
    return back


def _with_ways_out(leads: list[list[int]]) -> tuple[list[list[int]], dict[int, int]]:
    """(successors of each block, added node -> loop head). For each loop without an exit, the jumps back to
    its head go through an added node that also leads to the exit. Then lanes that diverge inside the loop
    meet at its head, whichever jump they take.
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
