"""The settings of a launch, frozen: its geometry and limits, the names for its reports, and how it is run."""

from __future__ import annotations

import functools
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ptxsim.causes.hints import Hints
from ptxsim.machine.global_memory import MAX_SHARED
from ptxsim.trace.schedule import Costs

Extents = tuple[int, int, int]
Shape = int | Sequence[int]  # up to three extents; the others are 1
MAX_GRID, MAX_BLOCK = (
    (2**31 - 1, 65535, 65535),
    (1024, 1024, 64),
)  # of every chip since compute capability 3.0


def extents(shape: Shape) -> Extents:
    """Three extents, missing ones as 1; raises ValueError for more than three, or for one below 1."""
    try:
        several = isinstance(shape, Sequence | np.ndarray)
        given = tuple(map(operator.index, shape if several else (shape,)))  # type: ignore[arg-type]
    except TypeError:
        given = (0,)
    if len(given) > 3 or any(x < 1 for x in given):
        raise ValueError(f"grid, block and cluster have up to three positive extents (got {shape!r})")
    return (*given, *(1,) * (3 - len(given)))  # type: ignore[return-value]


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer)


def _texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def _named(value: Any) -> bool:
    return isinstance(value, Sequence) and all(
        isinstance(each, tuple | list) and len(each) == 4 and _texts(each[:2]) and all(map(_whole, each[2:]))
        for each in value
    )


def _trace(value: Any) -> bool:
    return isinstance(value, bool | Costs) or callable(value) and value is not Costs


def _arrays(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        _whole(at)
        and at >= 0
        and isinstance(each[-1] if isinstance(each, tuple) and each else each, np.ndarray)
        for at, each in value.items()
    )


def _given(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytearray | Mapping | np.ndarray)


_COUNT = ("a whole number from 1 on, or None", lambda value: value is None or _whole(value) and value > 0)
_TAKES: dict[str, tuple[str, Callable[[Any], bool]]] = {  # option of launch -> (what it takes, test)
    "shared_bytes": ("a whole number of bytes", _whole),
    "cooperative": ("True, False or None", lambda value: isinstance(value, bool | None)),
    "max_instructions": ("a positive number, or None", _COUNT[1]),
    "arg_names": ("a list of texts, one per argument", _texts),
    "source": ("the name of a file", lambda value: isinstance(value, str | os.PathLike)),
    "hints": ("a ptxsim.Hints", lambda value: isinstance(value, Hints | None)),
    "checks": ("True or False", lambda value: isinstance(value, bool | np.bool_)),
    "names": ('a list such as [("tile", "float32", 0, 1024)]: name, dtype, offset, size', _named),
    "trace": ("True, False or a ptxsim.Costs", _trace),
    "jobs": _COUNT,
    "clusters": _COUNT,
    "first": ("the number of a cluster", _whole),
    "args": ("a list in the order of parameters, or bytes", _given),
    "memory": ("a dict of {address: array} or {address: (name, array)}", lambda v: v is None or _arrays(v)),
}


def take(**options) -> None:
    """Raises ValueError for an option of a launch that has a value of another kind."""
    for name, value in options.items():
        what, fits = _TAKES[name]
        if not fits(value):
            raise ValueError(f"{name} is {what} (got {value!r:.80})")


@functools.lru_cache(maxsize=64)
def check(grid: Extents, block: Extents, cluster: Extents, shared: int) -> None:
    """Raises ValueError for a launch that no chip can run."""
    threads, ctas = math.prod(block), math.prod(cluster)
    rules = [
        (threads > 1024, f"block {block} has {threads} threads; a CTA has at most 1024"),
        (_any_above(grid, MAX_GRID), f"grid {grid} has an extent above {MAX_GRID}"),
        (_any_above(block, MAX_BLOCK), f"block {block} has an extent above {MAX_BLOCK}"),
        (
            any(g % c for g, c in zip(grid, cluster, strict=True)),
            f"grid {grid} is not a multiple of cluster {cluster} (in CTAs)",
        ),
        (ctas > 16, f"cluster {cluster} has {ctas} CTAs; at most 16 are possible"),
        (
            not 0 <= shared <= MAX_SHARED,
            f"{shared} B of dynamic shared memory; a CTA has at most {MAX_SHARED}",
        ),
    ]
    for wrong, message in rules:
        if wrong:
            raise ValueError(message)


@dataclass(frozen=True)
class LaunchConfig:
    """The arguments of LoadedModule.launch that describe the launch, except its kernel and arguments."""

    grid: Extents
    block: Extents = (1, 1, 1)
    cluster: Extents = (1, 1, 1)
    shared_bytes: int = 0  # of dynamic shared memory
    cooperative: bool | None = None  # whether all CTAs run at the same time; None: if the kernel asks for it
    max_instructions: int | None = None  # warp instructions of one cluster; None: the default limit
    arg_names: tuple[str, ...] = ()  # for reports
    source: str = ""  # the file whose lines `// @src N` refers to, for reports
    hints: Hints | None = None

    @classmethod
    def of(cls, grid: Shape, block: Shape, cluster: Shape, shared_bytes: int = 0, **more) -> LaunchConfig:
        """A config from shapes of up to three extents; raises ValueError for what no chip can launch."""
        take(shared_bytes=shared_bytes, **more)
        config = cls(extents(grid), extents(block), extents(cluster), shared_bytes, **more)
        check(config.grid, config.block, config.cluster, config.shared_bytes)
        return config

    def in_clusters_of(self, required: tuple[int, int, int] | None) -> LaunchConfig:
        """This config with the kernel's .reqnctapercluster, if it has one and the launch sets no cluster."""
        if required is None or self.cluster != (1, 1, 1):
            return self
        config = replace(self, cluster=required)
        check(config.grid, config.block, config.cluster, config.shared_bytes)
        return config

    @property
    def threads(self) -> int:
        return math.prod(self.block)

    @property
    def ctas_per_cluster(self) -> int:
        return math.prod(self.cluster)

    @property
    def clusters(self) -> Extents:
        """The number of clusters of the grid along each dimension."""
        x, y, z = (g // c for g, c in zip(self.grid, self.cluster, strict=True))
        return x, y, z


def _any_above(shape: Extents, limits: Extents) -> bool:
    return any(extent > limit for extent, limit in zip(shape, limits, strict=True))


@dataclass(frozen=True)
class RunConfig:
    """How Launch.run runs a launch; LoadedModule.launch says what each field means."""

    checks: bool = True
    order: str | int = "program"
    names: Sequence[tuple[str, str, int, int]] = ()
    trace: bool | Costs | Callable = False
    jobs: int | None = None
    first: int = 0
    clusters: int | None = None

    def __post_init__(self):
        take(**{name: value for name, value in vars(self).items() if name != "order"})
        known = self.order in ("program", "adverse") or isinstance(self.order, int)
        if not known and not (self.order == "all" and self.checks and not self.trace):
            raise ValueError(f'order must be "program", "adverse" or an integer seed (got {self.order!r})')
