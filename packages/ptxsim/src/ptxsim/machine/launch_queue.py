"""Clusters of a grid that have not started: what clusterlaunchcontrol may take (PTX ISA 9.7.13.17).

Which request gets one is a choice of a run. "program": at most half of the grid starts by itself, and each
cluster may take as many of the rest as evens the work out, so that both answers come. "adverse": whoever asks
gets one, so that the first cluster takes all the others. A seed: three requests of four get one.
"""

from __future__ import annotations

import random
from collections import Counter


class LaunchQueue:
    """The clusters that one process has to run, in order."""

    def __init__(self):
        self.left: dict[int, None] = {}
        self.share: int | None = 0  # clusters that each may take; None: any number
        self.random: random.Random | None = None
        self.taken: list[tuple[int, int]] = []  # (by which cluster, which one), in order
        self.counts: Counter[int] = Counter()  # of them, by the first

    def offer(self, clusters, order: str | int, room: int) -> None:
        """`clusters` are to run; `room`: as many as a chip holds at a time."""
        self.left = dict.fromkeys(clusters)
        self.taken, self.counts = [], Counter()
        count = len(self.left)
        first = max(1, min(room, count // 2))
        self.share = None if order == "adverse" else -(-(count - first) // first)
        self.random = None if isinstance(order, str) else random.Random(order)

    def narrow(self, clusters) -> None:
        """This process runs only these."""
        self.left = dict.fromkeys(c for c in clusters if c in self.left)

    def begin(self, cluster: int) -> bool:
        """Whether a cluster still has to run; from now on nobody can take it."""
        if cluster not in self.left:
            return False
        del self.left[cluster]
        return True

    def snapshot(self) -> int:
        """What `restore` needs to undo all that is taken from now on, in an order without chance."""
        return len(self.taken)

    def restore(self, snapshot: int) -> None:
        """They are the first in line again, in the order in which they were taken."""
        undone = self.taken[snapshot:]
        del self.taken[snapshot:]
        self.counts.subtract(by for by, _ in undone)
        if undone:
            self.left = dict.fromkeys(cluster for _, cluster in undone) | self.left

    def take(self, by: int) -> int | None:
        """A cluster that will not start any more, for cluster `by`; None: the request fails."""
        had_its_share = self.share is not None and self.counts[by] >= self.share
        if not self.left or (self.random is None and had_its_share):
            return None
        if self.random is not None and self.random.random() < 0.25:
            return None
        cluster = next(iter(self.left))
        del self.left[cluster]
        self.taken.append((by, cluster))
        self.counts[by] += 1
        return cluster
