"""What the search over all interleavings goes through: the state of a small program, and what it may find.

Accesses are sets of bits: one bit for each step of each warp.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from research.every.programs import SLOTS


class TooLarge(Exception):
    pass


class Bar(NamedTuple):
    """An mbarrier (9.7.13.15)."""

    pending: int
    tx: int  # copies announced and not complete yet; copies that came before are negative
    phase: int
    gathered: int  # accesses that its arrivals so far hand on
    published: int  # those of complete phases


class Meet(NamedTuple):
    """A CTA barrier (9.7.13.1)."""

    arrived: int
    gathered: int
    waiting: tuple[int, ...]


class Flight(NamedTuple):
    """A bulk copy under way."""

    event: int
    know: int  # of its warp when it was issued
    bar: int  # that it completes on; -1: none, it belongs to a group of `warp`
    warp: int
    behind: int = 0  # cp.async that must be there before it: an arrival, no copy


class Values(NamedTuple):
    """What the accesses have moved: the first word of each slot, warps' sums, (line, word) of copies out."""

    slots: tuple[int, ...] = (0,) * SLOTS
    sums: tuple[int, ...] = ()
    out: tuple[tuple[int, int], ...] = ()


class State(NamedTuple):
    at: tuple[int, ...]
    know: tuple[int, ...]
    bars: tuple[Bar, ...]
    meets: tuple[Meet, ...]
    flags: tuple[tuple[int, int], ...]  # value, accesses handed on
    flights: tuple[Flight, ...]
    done: int  # accesses so far
    fences: tuple[tuple[int, int], ...]  # bit of each fence so far, what its warp knew then
    copies: tuple[tuple[int, int], ...]  # bit of each copy into shared memory that is complete, the same
    stuck: frozenset[int]  # warps that wait at a CTA barrier
    values: Values | None  # None: nobody asked


@dataclass
class Truth:
    """What is wrong in at least one interleaving."""

    races: set = field(default_factory=set)  # pairs of (warp, step)
    fences: set = field(default_factory=set)  # a copy reads what no fence.proxy.async stands behind
    odd: set = field(default_factory=set)  # the same, with the fence of another warp: no error
    stuck: bool = False
    pending: set = field(default_factory=set)  # copies into shared memory of which no warp learns
    over: bool = False  # more arrivals than the phase has left (undefined)
    states: int = 0
    outcomes: set[Values] = field(default_factory=set)  # at the ends, if asked for; nothing of the slots

    @property
    def wrong(self) -> bool:
        return bool(self.races or self.fences or self.stuck or self.pending)
