"""Steps of a warp with their costs. The type of `does` is the kind of a step.

costed_execution.py makes `Step`s and puts them into ptxas's order; the replay plays `Move`s, which name only
registers that arrive late. Both are tuples because a replay processes millions of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

JOINED = 2  # value of Stretch.branches: back to an iteration that ptxas joins with this one (unrolling.py)


class Stretch(NamedTuple):
    """Consecutive plain instructions."""

    slots: float  # issue slots
    ready: dict[str, float]  # register -> cycles from the start until it is ready
    branches: int = 0  # 1: ends with a branch; or JOINED
    roots: dict[str, frozenset] = {}  # register -> registers from which its value is computed
    refills: float = 0.0  # cycles of loads of spilled registers, and of instructions waiting for each other
    needed: dict[str, float] = {}  # register -> cycles from the start until it is read


class Slots(NamedTuple):
    """A Stretch as the replay plays it."""

    slots: float
    branches: int
    refills: float
    fills: tuple[tuple[str, float], ...]  # (register that other steps wait for, cycles until it is ready)


class Shared(NamedTuple):
    """A load from shared memory, or a store."""

    passes: int  # cycles of the port
    late: float  # cycles from the last pass until a register is ready
    write: bool


class Global(NamedTuple):
    """A load from global memory, a store, or an atomic."""

    sectors: int
    cached: int  # sectors in lines that the CTA has read before
    segment: int
    write: bool
    lines: int
    since: int = 0  # bytes that the CTA has read since it last read these lines
    fetched: int = 0  # bytes that HBM sends for sectors that are new to the CTA
    atomic: bool = False


class Product(NamedTuple):
    """mma.sync, wmma."""

    cycles: float  # of the tensor core
    late: float  # cycles until registers are ready


class Other(NamedTuple):
    slots: int
    late: float
    stays: bool  # the warp continues only when it is done


class Issue(NamedTuple):
    """Work for a unit."""

    event: int
    cycles: float


class Wait(NamedTuple):
    event: int
    cycles: float


class Tmem(NamedTuple):
    """tcgen05.ld, st."""

    event: int
    cycles: float  # of the port
    late: float  # cycles from then until it is done


class TmemWait(NamedTuple):
    """tcgen05.wait."""


class Step(NamedTuple):
    """A step of a costed execution."""

    does: Any  # one of the above
    reads: tuple[str, ...] = ()  # registers that it waits for
    writes: tuple[str, ...] = ()  # registers that it writes

    @property
    def loads(self) -> bool:
        return type(self.does) in (Shared, Global) and not self.does.write


class Move(NamedTuple):
    """A step as the replay plays it."""

    does: Any  # one of the above, Slots for a Stretch
    waits: tuple[tuple[str, float], ...] = ()  # (register, cycles from the start until it is needed)
    fills: tuple[str, ...] = ()  # registers that other steps wait for; of Slots they are in `does`
