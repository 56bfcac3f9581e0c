"""Control flow of one PTX function: basic blocks, dominators, register liveness.

Works on positions in a flat instruction list or on rows of a lowered program, independently of what
instructions compute.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np

from ptxsim.jit import bytecode


@dataclass
class Block:
    start: int  # first position
    end: int  # one past the last position
    next: list[int] = field(default_factory=list)  # successor blocks; EXIT if the kernel may end there

    @property
    def positions(self) -> range:
        return range(self.start, self.end)


EXIT = -1


@functools.lru_cache(maxsize=16)
def jumps_of(program) -> dict[int, tuple[list[int], bool]]:
    """Row of a branch or exit of a lowered program -> (rows to which it may jump, whether execution may also
    continue after it).
    """
    found: dict[int, tuple[list[int], bool]] = {}
    columns = program.code[:, [bytecode.OP, bytecode.GUARD, bytecode.IMM]].tolist()
    for row, (op, guard, target) in enumerate(columns):
        if op == bytecode.BRA:
            found[row] = [target], guard != 0
        elif op == bytecode.EXIT:
            found[row] = [], guard != 0
        elif op == bytecode.BRX:
            first, count = program.code[row, [bytecode.BRX_TABLE, bytecode.BRX_TARGETS]].tolist()
            found[row] = program.lists[first : first + count].tolist(), False
    return found


def next_rows(program, row: int, decide=None) -> list[int]:
    """Rows that may follow a row. decide: row of a conditional jump -> whether it is taken; None: unknown."""
    jumps, falls = jumps_of(program).get(row, ([], True))
    after = [row + 1] if falls and row + 1 < len(program.code) else []
    taken = decide(row) if decide and jumps and falls else None
    return (jumps if taken is not False else []) + (after if not taken else [])


def build_blocks(count: int, targets: dict[int, list[int]], falls: dict[int, bool]) -> list[Block]:
    """Blocks of `count` instructions.

    targets: position of each control instruction -> positions to which it may jump (empty for ret / exit).
    falls: the same positions -> whether execution may also continue after it.
    """
    leaders = {0} | {t for jumps in targets.values() for t in jumps} | {p + 1 for p in targets}
    starts = sorted(p for p in leaders if p < count)
    index = {start: i for i, start in enumerate(starts)}
    blocks = [Block(s, e) for s, e in zip(starts, starts[1:] + [count], strict=True)]
    for i, block in enumerate(blocks):
        last = block.end - 1
        jumps = [index.get(t, EXIT) for t in targets.get(last, [])]
        if falls.get(last, True):
            jumps.append(i + 1 if i + 1 < len(blocks) else EXIT)
        block.next = list(dict.fromkeys(jumps)) or [EXIT]
    return blocks


def reverse_postorder(root: int, leads) -> list[int]:
    """The nodes reachable from `root`, which is first, each before its successors except along back edges of
    loops. leads: node -> its successors.
    """
    order, seen, stack = [], {root}, [(root, iter(leads[root]))]
    while stack:
        node, rest = stack[-1]
        step = next((s for s in rest if s not in seen), None)
        if step is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(step)
            stack.append((step, iter(leads[step])))
    return order[::-1]


def dominators(order: list[int], before) -> dict[int, int]:
    """Node -> its immediate dominator (of the root: the root), by the iterative algorithm of Cooper, Harvey
    and Kennedy. order: reverse_postorder of the graph; before: node -> its predecessors.
    """
    rank = {b: i for i, b in enumerate(order)}
    parent = {order[0]: order[0]}

    def meet(a: int, b: int) -> int:
        while a != b:
            while rank[a] > rank[b]:
                a = parent[a]
            while rank[b] > rank[a]:
                b = parent[b]
        return a

    changed = True
    while changed:
        changed = False
        for b in order[1:]:
            new = functools.reduce(meet, (p for p in before[b] if p in parent))
            if parent.get(b) != new:
                parent[b], changed = new, True
    return parent


def live_ranges(
    blocks: list[Block], uses: list[int], kills: list[int], defs: list[int]
) -> tuple[dict[int, list[int]], int]:
    """(register -> first and last position at which it must keep its value, bit set of registers that may be
    read before they are written). Registers are bit indices.

    uses, kills, defs: per position, bit sets (Python ints) of registers read, certainly overwritten, and
    possibly written.
    """
    live_in = live_at_start(blocks, uses, kills)
    size = max((bits.bit_length() for bits in (*uses, *defs, *live_in)), default=0)
    firsts, lasts = [len(uses)] * size, [-1] * size
    for position, (used, defined) in enumerate(zip(uses, defs, strict=True)):
        bits = used | defined
        while bits:  # only a few are set
            register = bits.bit_length() - 1
            bits ^= 1 << register
            firsts[register], lasts[register] = min(firsts[register], position), position
    first, last = np.array(firsts), np.array(lasts)
    for b, block in enumerate(blocks):
        live = 0
        for s in block.next:
            live |= live_in[s] if s != EXIT else 0
        for bits, position in ((live, block.end - 1), (live_in[b], block.start)):
            held = _registers(bits, size)
            first[held] = np.minimum(first[held], position)
            last[held] = np.maximum(last[held], position)
    bounds = zip(first.tolist(), last.tolist(), strict=True)
    return {r: [low, high] for r, (low, high) in enumerate(bounds) if high >= 0}, live_in[0]


def _registers(bits: int, size: int) -> np.ndarray:
    """The positions of the set bits among `size` bits."""
    data = np.frombuffer(bits.to_bytes(-(-size // 8), "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(data, bitorder="little"))


def live_at_start(blocks: list[Block], uses: list[int], kills: list[int]) -> list[int]:
    gen, kill = [], []
    for block in blocks:
        g = k = 0
        for position in reversed(block.positions):
            g = (g & ~kills[position]) | uses[position]
            k |= kills[position]
        gen.append(g)
        kill.append(k)
    live_in = [0] * len(blocks)
    changed = True
    while changed:
        changed = False
        for b in range(len(blocks) - 1, -1, -1):
            out = 0
            for s in blocks[b].next:
                out |= live_in[s] if s != EXIT else 0
            new = gen[b] | (out & ~kill[b])
            if new != live_in[b]:
                live_in[b], changed = new, True
    return live_in
