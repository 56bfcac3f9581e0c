"""The control flow of a program: basic blocks, dominators and loops. Textbook analyses.

A block dominates another if every path from the entry to the other passes through it. A loop is a header and
the blocks from which the header is reached again without leaving the loop (Aho, Lam, Sethi, Ullman:
Compilers, 9.6).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxsim.lowering.cfg import EXIT, Block, build_blocks, dominators, jumps_of, reverse_postorder

NOWHERE = -1  # stands for the header of the innermost loop outside of all loops


@dataclass
class Flow:
    """The control flow graph. Block numbers are indices into `blocks`; only that has unreachable ones."""

    blocks: list[Block]
    order: list[int]  # reverse postorder from the entry
    before: list[list[int]]  # block -> reachable predecessors
    parent: dict[int, int]  # block -> immediate dominator; of the entry: the entry itself
    depth: dict[int, int] = field(default_factory=dict)  # block -> depth in the dominator tree
    loops: dict[int, set[int]] = field(default_factory=dict)  # header -> blocks
    inside: dict[int, list[int]] = field(default_factory=dict)  # block -> its loops, outermost first

    def dominates(self, a: int, b: int) -> bool:
        while self.depth[b] > self.depth[a]:
            b = self.parent[b]
        return a == b

    def innermost(self, block: int) -> int:
        """The header of the innermost loop around a reachable block, or NOWHERE."""
        return next(reversed(self.inside[block]), NOWHERE)

    def block_of(self) -> dict[int, int]:
        """Position of an instruction -> its block, if that is reachable."""
        return {position: b for b in self.order for position in self.blocks[b].positions}


def flow(program) -> Flow:
    """The control flow of a lowered program (lowering/emit.py)."""
    jumps = jumps_of(program)
    targets = {row: to for row, (to, _) in jumps.items()}
    return analysed(build_blocks(len(program.code), targets, {row: on for row, (_, on) in jumps.items()}))


def analysed(blocks: list[Block]) -> Flow:
    leads = [[after for after in block.next if after != EXIT] for block in blocks]
    order = reverse_postorder(0, leads)
    before: list[list[int]] = [[] for _ in blocks]
    for b in order:
        for after in leads[b]:
            before[after].append(b)
    found = Flow(blocks, order, before, dominators(order, before))
    for b in order:
        found.depth[b] = 0 if b == found.parent[b] else found.depth[found.parent[b]] + 1
    for b in order:
        for header in leads[b]:
            if found.dominates(header, b):
                found.loops.setdefault(header, {header}).update(_body(header, b, before))
    headers = sorted(found.loops, key=lambda h: -len(found.loops[h]))
    found.inside = {b: [h for h in headers if b in found.loops[h]] for b in order}
    return found


def _body(header: int, last: int, before: list[list[int]]) -> set[int]:
    """Blocks of a loop: those from which `last`, which jumps back, is reached without passing the header."""
    body, stack = {header}, [last]
    while stack:
        b = stack.pop()
        if b not in body:
            body.add(b)
            stack += before[b]
    return body
