"""A run as its listeners see it: what checks, traces and reports may read of a launch, a cluster and lanes.

Listeners read and change nothing. The classes themselves are in launch.py and machine/, which also keep what
only the machine needs (machine/launch_view.py, machine/cluster_view.py).
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

Place = tuple[int, int]  # of a barrier: (CTA rank, window offset)
Triple = tuple[int, int, int]


class Split(Protocol):
    """Lanes of one warp at one instruction: the origin of an event."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def warp(self) -> int: ...  # in the cluster
    @property
    def cta(self) -> int: ...  # rank of its CTA
    @property
    def mask(self) -> int: ...
    @property
    def row(self) -> int: ...  # of the program
    @property
    def instr(self) -> Any: ...  # the instruction of that row
    @property
    def lanes(self) -> np.ndarray: ...  # ascending
    @property
    def leader(self) -> int: ...  # the lowest lane
    @property
    def thread(self) -> int: ...  # number of the leader in the cluster
    def at(self, mask: int | None = None, row: int | None = None) -> Split: ...


class Scheduled(Split, Protocol):
    """A split that the scheduler knows by its number."""

    @property
    def index(self) -> int: ...  # its row in the split table
    @property
    def full_mask(self) -> int: ...  # the mask regardless of the guard predicate


class Barrier(Protocol):
    """An mbarrier (PTX ISA 9.7.13.15)."""

    @property
    def expected(self) -> int: ...  # arrivals that a phase needs
    @property
    def pending(self) -> int: ...  # arrivals still missing
    @property
    def tx(self) -> int: ...  # bytes announced and not delivered
    @property
    def phase(self) -> int: ...  # phases completed
    @property
    def announced(self) -> int: ...  # bytes, in this phase
    @property
    def delivered(self) -> int: ...
    def passed(self, parity: int) -> bool: ...
    def has_bytes_of(self, missing: int) -> bool: ...


class Barriers(Protocol):
    """The initialised mbarriers of a cluster, by place."""

    def __getitem__(self, place: Place, /) -> Barrier: ...
    def __contains__(self, place: object, /) -> bool: ...
    def __iter__(self) -> Iterator[Place]: ...
    def get(self, place: Place, /) -> Barrier | None: ...
    def items(self) -> ItemsView[Place, Barrier]: ...
    def last(self, place: Place) -> Barrier: ...  # also one that mbarrier.inval has ended


class Wait(Protocol):
    """Why a split is blocked."""

    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> tuple: ...
    @property
    def detail(self) -> dict: ...


class Launch(Protocol):
    """A kernel with its geometry and its memory."""

    program: Any  # Program of lowering/
    memory: Any  # GlobalMemory of machine/
    clusters: Triple  # of the grid
    ctas_per_cluster: int
    threads: int  # of a CTA
    warps_per_cta: int
    shared_window: int  # bytes of a CTA's shared memory that arrays hold: up to `shared_end`, in whole KiB
    shared_end: int  # end of all shared memory in the window
    variables: Any  # of the module
    shared_offsets: dict[str, int]  # of static variables in the window

    @property
    def early_uses(self) -> dict[int, int]: ...
    @property
    def loads_at_once(self) -> frozenset[int]: ...
    @property
    def unset_stores(self) -> dict[int, tuple[list[str], int]]: ...
    def cluster_cta_ids(self, index: int) -> list[Triple]: ...
    def shared_variables(self) -> list[Any]: ...  # Var of frontend/


class Cluster(Protocol):
    """One cluster of the grid while it runs."""

    index: int  # in the grid
    program: Any
    ctas: int
    warps: int  # of all its CTAs
    warps_per_cta: int
    cta_ids: list[Triple]  # %ctaid by rank
    alive: list[int]  # mask of the lanes of each warp that have not exited
    stuck: bool  # no thread can run any more
    split_table: np.ndarray
    registers: np.ndarray  # (warps, slots, 32)
    predicates: np.ndarray  # (warps, slots): masks
    shared: np.ndarray  # (CTAs, bytes)
    unit_state: dict[Any, Any]  # what units keep per cluster

    @property
    def launch(self) -> Launch: ...
    @property
    def reporter(self) -> Any: ...  # of findings
    @property
    def bus(self) -> Any: ...
    @property
    def engine(self) -> Any: ...  # of asynchronous work
    @property
    def mbarriers(self) -> Barriers: ...
    @property
    def waits(self) -> Mapping[int, Wait]: ...  # of blocked splits, by number
    @property
    def splits(self) -> Mapping[int, Scheduled]: ...
    def lanes_at_start(self, warp: int) -> int: ...
    def cta_alive(self, cta: int) -> int: ...
