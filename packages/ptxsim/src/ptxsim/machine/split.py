"""Splits, the lanes of one warp that are at the same instruction, as handlers see them; and waits."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ptxsim.jit import bytecode

# what the handler of a unit instruction returns, besides None (done; continue)
BLOCK = "block"  # not done: run the handler again when the split wakes
PARK = "park"  # done, but sleep until woken


@functools.lru_cache(maxsize=4096)
def lane_list(mask: int) -> np.ndarray:
    """The lanes of a mask, ascending."""
    return np.flatnonzero([(mask >> lane) & 1 for lane in range(32)])


def first_lane(mask: int) -> int:
    """The lowest lane of a mask."""
    return (mask & -mask).bit_length() - 1


@dataclass
class Wait:
    """Why a split sleeps: `kind`, and `detail` for a report that explains it."""

    kind: str  # "mbarrier", "bar", "cluster", "tmem-alloc", "registers", "collective", "group", "wgmma"
    key: tuple  # Cluster.wake(key) wakes the split
    detail: dict = field(default_factory=dict)


class Lanes:
    """Lanes of a warp at an instruction: properties for subclasses, which define the fields."""

    __slots__ = ()
    cluster: Any
    warp: int
    cta: int
    issued: dict[int, int] | None
    mask: int
    row: int

    @property
    def lanes(self) -> np.ndarray:
        return lane_list(self.mask)

    @property
    def one_lane(self) -> bool:
        return self.mask & (self.mask - 1) == 0

    @property
    def leader(self) -> int:
        """The lowest active lane."""
        return first_lane(self.mask)

    @property
    def thread(self) -> int:
        """Number of the leader thread in the cluster."""
        return self.warp * 32 + self.leader

    @property
    def instr(self):
        return self.cluster.program.instrs[self.row]

    def at(self, mask: int | None = None, row: int | None = None) -> Origin:
        """The current location; with `mask`, of only those lanes; with `row`, at another instruction."""
        mask, row = self.mask if mask is None else mask, self.row if row is None else row
        return Origin(self.cluster, self.warp, self.cta, self.issued, mask, row)


class _Location(NamedTuple):
    cluster: object
    warp: int  # in the cluster
    cta: int  # rank of its CTA
    issued: dict[int, int] | None  # see Split
    mask: int  # of lanes
    row: int  # of the program


class Origin(Lanes, _Location):
    """An immutable copy of a split's lanes and row, kept by asynchronous work and reports as their origin."""

    __slots__ = ()


class Split(Lanes):
    """A split as handlers see it while they run. `mask`: the lanes for which the instruction's guard is true.
    `issued`: the operands of a single-thread instruction when the main loop issued it, slot -> value and
    ~slot -> mask of a predicate; None for the instruction at which the split currently is.
    """

    __slots__ = ("cluster", "index", "warp", "cta", "issued", "mask", "row")

    def __init__(self, cluster, index: int):
        self.cluster, self.index = cluster, index
        self.warp = index // 32
        self.issued: dict[int, int] | None = None
        self.cta = self.warp // cluster.warps_per_cta
        self.mask = 0
        self.row = 0

    @property
    def full_mask(self) -> int:
        """Mask of all lanes of the split, regardless of the guard."""
        return int(self.cluster.split_table[self.index, bytecode.SP_MASK])


class Splits(dict[int, Split]):
    """The splits of a cluster by number, each created on first use: few warps ever diverge."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster = cluster

    def __missing__(self, index: int) -> Split:
        split = self[index] = Split(self.cluster, index)
        return split
