"""Proxy fences: which generic writes the asynchronous units may see (PTX ISA 9.7.13.4, 9.7.9.25.2).

A unit that reads through the async proxy (TMA, tensor core) sees a thread's write if that thread executed
fence.proxy.async, for that state space, after the write and before the synchronisation that leads to the
unit's instruction. PTX does not say whether a fence of another thread, after that synchronisation, is enough:
`elsewhere` distinguishes such a fence from none at all. cp.async writes through the generic proxy too, but is
not part of its thread's program order (8.9.1.1): for it, the fence of any thread that has waited for it is
enough. Completion of an operation of the async proxy includes the fence in the other direction, so only
generic -> async needs one.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass

import numpy as np

from ptxsim.checks.race.part import Part
from ptxsim.checks.race.shadow_bytes import MEMORY, SHARED
from ptxsim.events.records import Fence
from ptxsim.events.views import Cluster, Split
from ptxsim.jit.compiled import compiled

_ROOM = 16  # fences per thread, at first
_REMEMBERED = 64  # latest fences of the same threads whose clocks are kept


@dataclass(eq=False)
class Executed:
    """One executed fence, and what its threads knew."""

    agents: np.ndarray
    at: np.ndarray  # their epochs
    knew: np.ndarray  # of threads: (agents, threads), or one row if they differ only in their own epochs
    copied: np.ndarray  # (agents, threads) or empty: the last cp.async of each thread that they knew of

    def known_by(self, clock: np.ndarray) -> np.ndarray:
        return self.at <= clock[self.agents]


class ProxyFences(Part):
    """Part of the RaceDetector: the proxy fences of one cluster, by state space."""

    def start(self, cluster: Cluster) -> None:
        threads = self.clocks.threads
        self.epochs: dict[str, np.ndarray] = {
            space: np.zeros((threads, _ROOM), np.int32) for space in (SHARED, MEMORY)
        }
        self.counts = {space: np.zeros(threads, np.int32) for space in (SHARED, MEMORY)}
        # space -> (first, last and number of the threads) -> their latest fences
        self.snapshots: dict[str, dict[tuple, deque[Executed]]] = {SHARED: {}, MEMORY: {}}
        self.stood_in: dict[str, list[Executed]] = {SHARED: [], MEMORY: []}  # what `elsewhere` found last

    def fence(self, cluster: Cluster, split: Split, fence: Fence) -> None:
        spaces = [SHARED] * fence.shared_proxy + [MEMORY] * fence.global_proxy
        if not spaces:
            return
        agents = self.clocks.agents(split)
        knew, copied = self._knew(agents), self._copied(agents)
        at = _next_epochs(self.clocks.clock, agents)
        for space in spaces:
            while not _enter(self.epochs[space], self.counts[space], agents, at):
                self.epochs[space] = np.pad(self.epochs[space], ((0, 0), (0, self.epochs[space].shape[1])))
                self.races.history.describe()
            key = int(agents[0]), int(agents[-1]), len(agents)
            kept = self.snapshots[space].get(key)
            if kept is None:
                kept = self.snapshots[space][key] = deque(maxlen=_REMEMBERED)
            kept.append(Executed(agents, at, knew, copied))

    def _knew(self, agents: np.ndarray) -> np.ndarray:
        """What these threads know of other threads. A thread's own epoch does not count, because the fence
        is its own.
        """
        common, alike = _common(self.clocks.clock, agents, self.clocks.threads)
        if alike:
            return common
        rows = self.clocks.clock[agents, : self.clocks.threads]
        rows[np.arange(len(agents)), agents] = common[0, agents]
        return rows

    def _copied(self, agents: np.ndarray) -> np.ndarray:
        first = self.clocks.first_copy
        if not first:
            return np.zeros(0, np.int32)
        return self.clocks.clock[agents, first : first + self.clocks.threads]

    def elsewhere(self, space: str, thread: int, epoch: int, clock: np.ndarray) -> int | None:
        """Another thread that executed the fence when it knew of the write, if `clock` knows of that
        fence.
        """
        latest = self.stood_in[space]  # likely to do for the next write, too
        for fence in itertools.chain(latest, *self.snapshots[space].values()):
            good = (fence.agents != thread) & fence.known_by(clock) & (fence.knew[:, thread] >= epoch)
            if good.any():
                self.stood_in[space] = [fence]
                return int(fence.agents[good][0])
        return None

    def copies_seen(self, space: str, clock: np.ndarray) -> np.ndarray:
        """For each agent, how many of its cp.async come before a fence that `clock` knows of."""
        seen = np.zeros(self.clocks.threads, np.int32)
        for fences in self.snapshots[space].values():
            for fence in reversed(fences):
                known = fence.known_by(clock)
                if len(fence.copied) and known.any():
                    np.maximum(seen, fence.copied[known].max(0), out=seen)
                if known.all():  # earlier, the same threads knew no more
                    break
        return seen


@compiled()
def _common(clock, agents, threads):
    """(1, threads): what all of these agents know of threads; and whether none knows more, except of
    itself.
    """
    low, more = clock[agents[0] : agents[0] + 1, :threads].copy(), 0
    for agent in agents[1:]:
        for t in range(threads):
            low[0, t] = min(low[0, t], clock[agent, t])
    for agent in agents:
        more -= clock[agent, agent] != low[0, agent]
        for t in range(threads):
            more += clock[agent, t] != low[0, t]
    return low, more == 0


@compiled()
def _next_epochs(clock, agents):
    """Begins new epochs of these agents; returns their numbers."""
    at = np.empty(len(agents), np.int32)
    for i, agent in enumerate(agents):
        clock[agent, agent] += 1
        at[i] = clock[agent, agent]
    return at


@compiled()
def _enter(epochs, counts, agents, at):
    """Adds a fence of each of these agents; False if the table must be wider first."""
    for agent in agents:
        if counts[agent] == epochs.shape[1]:
            return False
    for i, agent in enumerate(agents):
        epochs[agent, counts[agent]] = at[i]
        counts[agent] += 1
    return True
