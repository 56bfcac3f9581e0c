"""What a launch is asked for, frozen: its geometry and limits, the words of its reports, how it is run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

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
    """Three of them; ValueError where that is none."""
    given = (shape,) if isinstance(shape, int) else tuple(int(x) for x in shape)
    if len(given) > 3 or any(x < 1 for x in given):
        raise ValueError(f"grid, block and cluster have up to three positive extents (got {given})")
    return (*given, *(1,) * (3 - len(given)))  # type: ignore[return-value]


@dataclass(frozen=True)
class LaunchConfig:
    """What Module.launch says of a launch besides its kernel and arguments."""

    grid: Extents
    block: Extents = (1, 1, 1)
    cluster: Extents = (1, 1, 1)
    shared_bytes: int = 0  # of dynamic shared memory
    max_instructions: int | None = None  # of one cluster; None: the usual
    arg_names: tuple[str, ...] = ()  # for reports
    source: str = ""  # the file that `// @src N` lines number, for reports
    hints: Hints | None = None

    @classmethod
    def of(cls, grid: Shape, block: Shape, cluster: Shape, shared_bytes: int = 0, **more) -> LaunchConfig:
        """From extents of any length; ValueError for what no chip can launch."""
        config = cls(extents(grid), extents(block), extents(cluster), shared_bytes, **more)
        config._check()
        return config

    def in_clusters_of(self, required: Sequence[int] | None) -> LaunchConfig:
        """With the kernel's .reqnctapercluster, if it has one and the launch names none."""
        if not required or self.cluster != (1, 1, 1):
            return self
        config = replace(self, cluster=extents(required))
        config._check()
        return config

    @property
    def threads(self) -> int:
        return math.prod(self.block)

    @property
    def ctas_per_cluster(self) -> int:
        return math.prod(self.cluster)

    @property
    def clusters(self) -> Extents:
        """Those of the grid, along each dimension."""
        x, y, z = (g // c for g, c in zip(self.grid, self.cluster, strict=True))
        return x, y, z

    def _check(self) -> None:
        rules = {
            "block {block} has {threads} threads; a CTA has at most 1024": self.threads > 1024,
            f"grid {{grid}} has an extent above {MAX_GRID}": _any_above(self.grid, MAX_GRID),
            f"block {{block}} has an extent above {MAX_BLOCK}": _any_above(self.block, MAX_BLOCK),
            "grid {grid} is not a multiple of cluster {cluster} (in CTAs)": any(
                g % c for g, c in zip(self.grid, self.cluster, strict=True)
            ),
            "cluster {cluster} has {ctas} CTAs; at most 16 are possible": self.ctas_per_cluster > 16,
            f"{{shared}} B of dynamic shared memory; a CTA has at most {MAX_SHARED}": (
                not 0 <= self.shared_bytes <= MAX_SHARED
            ),
            "max_instructions is a positive number (got {most})": (
                self.max_instructions is not None and self.max_instructions < 1
            ),
        }
        for message, wrong in rules.items():
            if wrong:
                told = {"threads": self.threads, "ctas": self.ctas_per_cluster, "shared": self.shared_bytes}
                shape = {"grid": self.grid, "block": self.block, "cluster": self.cluster}
                raise ValueError(message.format(**told, **shape, most=self.max_instructions))


def _any_above(shape: Extents, limits: Extents) -> bool:
    return any(extent > limit for extent, limit in zip(shape, limits, strict=True))


@dataclass(frozen=True)
class RunConfig:
    """How Launch.run runs it; Module.launch says what each of these means."""

    checks: bool = True
    order: str | int = "program"
    names: Sequence[tuple[str, str, int, int]] = ()
    trace: bool | Costs | Callable = False
    jobs: int | None = None
    first: int = 0
    clusters: int | None = None

    def __post_init__(self):
        known = self.order in ("program", "adverse") or isinstance(self.order, int)
        if not known and not (self.order == "all" and self.checks and not self.trace):
            raise ValueError(f'order must be "program", "adverse" or an integer seed (got {self.order!r})')
