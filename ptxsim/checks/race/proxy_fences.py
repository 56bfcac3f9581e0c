"""Proxy fences: which generic writes the asynchronous units may see (PTX ISA 9.7.13.4, 9.7.9.25.2).

A unit that reads through the async proxy (TMA, tensor core) sees a thread's write if that thread executed
fence.proxy.async, for that state space, after the write and before the synchronisation that leads to the
unit's instruction. PTX does not say whether a fence of another thread, after that synchronisation, is
enough: `elsewhere` tells such a fence from none at all. Completion of an asynchronous operation includes the
fence in the other direction, so that only generic -> async needs one.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ptxsim.checks.observer import Observer
from ptxsim.checks.race.shadow_bytes import MEMORY, SHARED
from ptxsim.checks.race.vector_clocks import rows_copy

_ROOM = 16  # fences per thread, at first
_REMEMBERED = 4  # fences of a thread whose knowledge is kept for `elsewhere`


class ProxyFences(Observer):
    """Part of the RaceDetector: the proxy fences of one cluster, by state space."""

    def __init__(self, races):
        self.races = races

    def start(self, cluster) -> None:
        self.clocks = self.races.clocks
        threads = self.clocks.threads
        self.epochs = {space: np.zeros((threads, _ROOM), np.int32) for space in (SHARED, MEMORY)}
        self.counts = {space: np.zeros(threads, np.int32) for space in (SHARED, MEMORY)}
        # per first lane: lanes, epochs, knew
        self.snapshots: dict[str, dict[int, deque]] = {SHARED: {}, MEMORY: {}}

    def fence(self, cluster, split, mods: set[str]) -> None:
        if is_async_fence(mods):
            self.record(self.clocks.agents(split), mods)

    def record(self, agents: np.ndarray, mods: set[str]) -> None:
        """These threads execute fence.proxy.async with these modifiers."""
        clock = self.clocks.clock
        before = rows_copy(clock[:, : self.clocks.threads], agents)  # of threads: only they need fences
        clock[agents, agents] += 1
        for space in fence_spaces(mods):
            counts = self.counts[space]
            if counts[agents].max() == self.epochs[space].shape[1]:
                self.epochs[space] = np.pad(self.epochs[space], ((0, 0), (0, self.epochs[space].shape[1])))
                self.races.history.describe()
            self.epochs[space][agents, counts[agents]] = clock[agents, agents]
            counts[agents] += 1
            kept = self.snapshots[space].setdefault(int(agents[0]), deque(maxlen=_REMEMBERED))
            kept.append((agents, clock[agents, agents], before))

    def elsewhere(self, space: str, thread: int, epoch: int, clock: np.ndarray) -> int | None:
        """Another thread that executed the fence when it knew of the write and that `clock` knows of."""
        for fences in self.snapshots[space].values():
            for agents, at, knew in fences:
                good = (agents != thread) & (at <= clock[agents]) & (knew[:, thread] >= epoch)
                if good.any():
                    return int(agents[good][0])
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
