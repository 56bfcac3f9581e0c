"""A synchronisation program: what each warp of a cluster does, event by event.

A `Program` is one cluster. Memory is counted in words of 4 bytes: shared memory of a CTA is
`("s", rank, word)`, global memory `("g", 0, word)`, tensor memory `("t", rank, 512 * quadrant + column)`.
An `Op` is one event of one warp; the lanes in its mask take part. Nothing here knows ptxsim.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

FULL = 0xFFFF_FFFF
SLOT = 32  # words: one per lane
TILE = 1024  # words of an operand tile of the tensor core
SLOTS = 48  # shared slots of a CTA; tiles follow
TILES = 4
BARS = 24  # mbarriers of a CTA
FLAGS = 16  # flag words, of each CTA and of global memory

# all lanes of the mask execute these together
COLLECTIVE = {
    "bar_sync", "bar_arrive", "warp_sync", "cl_arrive", "cl_wait", "tmem_ld", "tmem_st", "wait_ld",
    "wait_st", "wgmma", "wgmma_commit", "wgmma_wait",
}  # fmt: skip


@dataclass(eq=False)
class Op:
    kind: str
    lanes: int = FULL
    a: dict = field(default_factory=dict)  # arguments, by name
    arms: list = field(default_factory=list)  # kind "arms": [(mask, [Op, ..]), ..], executed apart
    id: int = 0  # its line number in the PTX's `// @src` marks

    def __str__(self) -> str:
        lanes = "" if self.lanes == FULL else f" lanes {self.lanes:#x}"
        args = " ".join(f"{k}={v}" for k, v in self.a.items())
        inner = "".join(f" [{mask:#x}: {'; '.join(map(str, ops))}]" for mask, ops in self.arms)
        return f"#{self.id} {self.kind}{lanes} {args}{inner}"


@dataclass(eq=False)
class Program:
    warps: int  # of a CTA
    ctas: int  # of the cluster
    code: list  # [rank * warps + warp] -> [Op, ..]
    bars: dict  # (rank, index) -> arrivals expected; initialised before the code starts
    target: str = "sm_100a"
    elect: bool = False  # lane 0 is chosen by elect.sync rather than by its number
    seed: int = 0

    @property
    def threads(self) -> int:
        return self.warps * 32 * self.ctas

    def number(self) -> Program:
        """Numbers all events; returns the program itself."""
        shared: dict = {}
        for number, op in enumerate(self.ops(), 1):
            op.id = shared.setdefault(op.a["block"], number) if "block" in op.a else number
        return self

    def same_blocks(self) -> bool:
        """Whether all warps that execute one instruction together give it the same arguments."""
        shared: dict = {}
        blocks = [op for op in self.ops() if "block" in op.a]
        return all(shared.setdefault(op.a["block"], (op.kind, op.a)) == (op.kind, op.a) for op in blocks)

    def ops(self):
        """Every event, including those inside arms."""
        for code in self.code:
            for op in code:
                yield op
                for _, inner in op.arms:
                    yield from inner

    def copy(self) -> Program:
        return copy.deepcopy(self)

    def __str__(self) -> str:
        lines = [
            f"{self.target} {self.ctas} CTAs of {self.warps} warps, elect={self.elect}, bars {self.bars}"
        ]
        for w, code in enumerate(self.code):
            lines += [f"CTA {w // self.warps} warp {w % self.warps}:", *(f"  {op}" for op in code)]
        return "\n".join(lines)


def lanes_of(mask: int) -> list[int]:
    return [i for i in range(32) if mask >> i & 1]


def lane_paths(code: list[Op]) -> list[list[Op]]:
    """For each of 32 lanes, its events in order."""
    paths: list[list[Op]] = [[] for _ in range(32)]
    for op in code:
        if op.kind == "arms":
            for mask, inner in op.arms:
                for step in inner:
                    for lane in lanes_of(mask & step.lanes):
                        paths[lane].append(step)
        else:
            for lane in lanes_of(op.lanes):
                paths[lane].append(op)
    return paths


PATTERNS = {  # word of a slot that a lane touches
    "own": lambda lane: lane,
    "next": lambda lane: lane ^ 1,
    "flip": lambda lane: 31 - lane,
    "one": lambda lane: 0,
}
