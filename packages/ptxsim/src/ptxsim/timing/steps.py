"""Steps of a warp with their costs. The type of `does` is the kind of a step.

A script makes `Step`s and puts them into ptxas's order; the replay plays `Move`s, which name only registers
that arrive late. Both are tuples, as a replay goes through millions of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

JOINED = 2  # of Stretch.branches: back to an iteration that ptxas joins with this one (unrolling.py)


class Stretch(NamedTuple):
    """Plain instructions in a row."""

    slots: float  # issue slots
    ready: dict[str, float]  # register -> cycles from the begin until it is there
    branches: int = 0  # 1: ends with a branch; JOINED
    roots: dict[str, frozenset] = {}  # register -> those that its value is made of
    refills: float = 0.0  # cycles of loads of what ptxas spilled, and of waits of one for another
    needed: dict[str, float] = {}  # register -> cycles from the begin until it is read


class Slots(NamedTuple):
    """A Stretch as it is played."""

    slots: float
    branches: int
    refills: float
    fills: tuple[tuple[str, float], ...]  # register that others wait for, cycles until it is there


class Shared(NamedTuple):
    """A load from shared memory, or a store."""

    passes: int  # cycles of the port
    late: float  # cycles until a register is there, from the last pass
    write: bool


class Global(NamedTuple):
    """A load from global memory, a store, or an atomic."""

    sectors: int
    cached: int  # of the sectors: in lines that the CTA has read before
    segment: int
    write: bool
    lines: int
    since: int = 0  # bytes that the CTA has read since it last read these lines
    fetched: int = 0  # bytes that HBM sends for sectors that are new to the CTA
    atomic: bool = False


class Product(NamedTuple):
    """mma.sync, wmma."""

    cycles: float  # of the tensor core
    late: float  # until registers are there


class Other(NamedTuple):
    slots: int
    late: float
    stays: bool  # the warp goes on when it is done


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
    late: float  # cycles until it is done, beyond these


class TmemWait(NamedTuple):
    """tcgen05.wait."""


class Step(NamedTuple):
    """A step of a script."""

    does: Any  # one of the above
    reads: tuple[str, ...] = ()  # registers that it waits for
    writes: tuple[str, ...] = ()  # that it fills

    @property
    def loads(self) -> bool:
        return type(self.does) in (Shared, Global) and not self.does.write

    @property
    def stores(self) -> bool:
        return type(self.does) in (Shared, Global) and self.does.write


class Move(NamedTuple):
    """A step as it is played."""

    does: Any  # one of the above, Slots for a Stretch
    waits: tuple[tuple[str, float], ...] = ()  # register, cycles from the begin until it is needed
    fills: tuple[str, ...] = ()  # that others wait for; those of Slots stand there
