"""A split: lanes of one warp that stand at the same instruction, as handlers see them; and why one sleeps."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ptxsim.jit import bytecode

# what the handler of a unit instruction returns, besides None (done, go on)
BLOCK = "block"  # run me again when woken
PARK = "park"  # done, but sleep until woken


@functools.lru_cache(maxsize=4096)
def lane_list(mask: int) -> np.ndarray:
    """Lanes of a mask, ascending."""
    return np.flatnonzero([(mask >> lane) & 1 for lane in range(32)])


@dataclass
class Wait:
    """Why a split sleeps: `kind` and what a report needs to explain it."""

    kind: str  # "mbarrier", "bar", "cluster", "tmem-alloc", "registers", "collective", "group", "wgmma"
    key: tuple  # who wakes it: Cluster.wake(key)
    detail: dict = field(default_factory=dict)


class Lanes:
    """What can be said of lanes of a warp at an instruction; a subclass has the fields."""

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
        return (self.mask & -self.mask).bit_length() - 1

    @property
    def thread(self) -> int:
        """Number of the leader thread in the cluster."""
        return self.warp * 32 + self.leader

    @property
    def instr(self):
        return self.cluster.program.instrs[self.row]

    def at(self, mask: int | None = None, row: int | None = None) -> Location:
        """Where it stands now; with `mask` only those lanes, with `row` at another instruction."""
        mask, row = self.mask if mask is None else mask, self.row if row is None else row
        return Location(self.cluster, self.warp, self.cta, self.issued, mask, row)


class _Location(NamedTuple):
    cluster: object
    warp: int  # in the cluster
    cta: int  # rank of its CTA
    issued: dict[int, int] | None  # see Split
    mask: int  # lanes
    row: int  # of the program


class Location(Lanes, _Location):
    """Lanes of a warp at an instruction, to keep: asynchronous work and reports remember where it began."""

    __slots__ = ()


class Split(Lanes):
    """A split as handlers see it while they run. `mask` holds the lanes for which the instruction's guard is
    true. `issued`: what an instruction of one thread read when the main loop issued it, slot -> value and
    ~slot -> mask of a predicate; None for an instruction at which the split stands.
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
        """All lanes of the split, whatever the guard says."""
        return int(self.cluster.split_table[self.index, bytecode.SP_MASK])


class Splits(dict[int, Split]):
    """The splits of a cluster by number, each made when a handler first sees it: few warps ever diverge."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster = cluster

    def __missing__(self, index: int) -> Split:
        split = self[index] = Split(self.cluster, index)
        return split
