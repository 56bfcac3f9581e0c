"""What the search over all interleavings uses: the state of a small program, and the faults that it may find.

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
    tx: int  # copies announced and not complete yet; negative if copies complete before they are announced
    phase: int
    gathered: int  # accesses that the arrivals of this phase release
    published: int  # those of complete phases


class Meet(NamedTuple):
    """A CTA barrier (9.7.13.1)."""

    arrived: int
    gathered: int
    waiting: tuple[int, ...]


class Flight(NamedTuple):
    """A bulk copy under way."""

    event: int
    know: int  # what its warp knew when the copy was issued
    bar: int  # on which it completes; -1: none, it belongs to a group of `warp`
    warp: int
    behind: int = 0  # cp.async that must complete before it: an arrival, not a copy


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
    flags: tuple[tuple[int, int], ...]  # value, accesses released with it
    flights: tuple[Flight, ...]
    done: int  # accesses so far
    fences: tuple[tuple[int, int], ...]  # bit of each fence so far, and what its warp knew then
    copies: tuple[tuple[int, int], ...]  # bit of each copy into shared memory that is complete, the same
    stuck: frozenset[int]  # warps that wait at a CTA barrier
    values: Values | None  # None: not requested


@dataclass
class Truth:
    """What is wrong in at least one interleaving."""

    races: set = field(default_factory=set)  # pairs of (warp, step)
    fences: set = field(default_factory=set)  # a copy reads data with no fence.proxy.async after its write
    odd: set = field(default_factory=set)  # the same, but another warp executed a fence: not an error
    stuck: bool = False
    pending: set = field(default_factory=set)  # copies into shared memory that no warp waits for
    over: bool = False  # more arrivals than the phase has left (undefined)
    states: int = 0
    outcomes: set[Values] = field(default_factory=set)  # at the ends, if requested; without the slots

    @property
    def wrong(self) -> bool:
        return bool(self.races or self.fences or self.stuck or self.pending)
