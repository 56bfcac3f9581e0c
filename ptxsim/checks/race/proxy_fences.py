"""Proxy fences: which generic writes the asynchronous units may see (PTX ISA 9.7.13.4, 9.7.9.25.2).

A unit that reads through the async proxy (TMA, tensor core) sees a thread's write if that thread executed
fence.proxy.async, for that state space, after the write and before the synchronisation that leads to the
unit's instruction. PTX does not say whether a fence of another thread, behind that synchronisation, is
enough: `elsewhere` tells such a fence from none at all. Completion of an asynchronous operation includes the
fence in the other direction, so that only generic -> async needs one.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ptxsim.checks.race.shadow_bytes import FENCES
from ptxsim.checks.race.vector_clocks import Order, rows_copy

SHARED, MEMORY = "shared", "memory"
_REMEMBERED = 4  # fences of a thread whose knowledge is kept for `elsewhere`


class ProxyFences:
    """The proxy fences of one cluster, by state space."""

    def __init__(self, order: Order):
        self.order = order
        shape = order.threads, FENCES
        self.epochs = {space: np.zeros(shape, np.int32) for space in (SHARED, MEMORY)}
        self.counts = {space: np.zeros(order.threads, np.int32) for space in (SHARED, MEMORY)}
        # per first lane: lanes, epochs, knew
        self.snapshots: dict[str, dict[int, deque]] = {SHARED: {}, MEMORY: {}}

    def record(self, rows: np.ndarray, mods: set[str]) -> None:
        """These threads execute fence.proxy.async with these modifiers."""
        spaces = fence_spaces(mods)
        clocks = self.order.clocks
        before = rows_copy(clocks, rows)
        clocks[rows, rows] += 1
        for space in spaces:
            counts = self.counts[space]
            self.epochs[space][rows, counts[rows] % FENCES] = clocks[rows, rows]
            counts[rows] += 1
            kept = self.snapshots[space].setdefault(int(rows[0]), deque(maxlen=_REMEMBERED))
            kept.append((rows, clocks[rows, rows], before))

    def elsewhere(self, space: str, thread: int, epoch: int, clock: np.ndarray) -> int | None:
        """Another thread that executed the fence when it knew of the write and that `clock` knows of."""
        for fences in self.snapshots[space].values():
            for rows, at, knew in fences:
                good = (rows != thread) & (at <= clock[rows]) & (knew[:, thread] >= epoch)
                if good.any():
                    return int(rows[good][0])
        return None


def fence_spaces(mods: set[str]) -> tuple[str, ...]:
    """State spaces that fence.proxy.async covers: the one it names, or all."""
    if any("shared" in m for m in mods):
        return (SHARED,)
    if any("global" in m for m in mods):
        return (MEMORY,)
    return (SHARED, MEMORY)


def is_async_fence(mods: set[str]) -> bool:
    return "proxy" in mods and any(m.startswith("async") for m in mods)
