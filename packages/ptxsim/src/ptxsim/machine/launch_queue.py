"""Clusters of a grid that have not started, which clusterlaunchcontrol may take (PTX ISA 9.7.13.17).

Which requests succeed depends on the order of the run. "program": at most half of the grid starts by itself,
and each cluster may take an equal share of the rest, so that requests both succeed and fail. "adverse": every
request succeeds, so that the first cluster takes all the others. A seed: three of four requests succeed.
"""

from __future__ import annotations

import random
from collections import Counter


class LaunchQueue:
    """The clusters that one process has to run, in order."""

    def __init__(self):
        self.left: dict[int, None] = {}
        self.share: int | None = 0  # clusters that each cluster may take; None: any number
        self.random: random.Random | None = None
        self.taken: list[tuple[int, int]] = []  # (taking cluster, taken cluster), in order
        self.counts: Counter[int] = Counter()  # taking cluster -> how many it has taken

    def offer(self, clusters, order: str | int, room: int) -> None:
        """Sets the clusters to run. room: how many clusters a chip holds at a time."""
        self.left = dict.fromkeys(clusters)
        self.taken, self.counts = [], Counter()
        count = len(self.left)
        first = max(1, min(room, count // 2))
        self.share = None if order == "adverse" else -(-(count - first) // first)
        self.random = None if isinstance(order, str) else random.Random(order)

    def narrow(self, clusters) -> None:
        """Keeps only these clusters, which this process runs."""
        self.left = dict.fromkeys(c for c in clusters if c in self.left)

    def begin(self, cluster: int) -> bool:
        """Whether a cluster still has to run; from now on, no other can take it."""
        if cluster not in self.left:
            return False
        del self.left[cluster]
        return True

    def snapshot(self) -> int:
        """A mark for `restore`, which undoes all takes after it; not for random orders."""
        return len(self.taken)

    def restore(self, snapshot: int) -> None:
        """Undoes all takes since `snapshot`: the clusters are first in line again, in their former order."""
        undone = self.taken[snapshot:]
        del self.taken[snapshot:]
        self.counts.subtract(by for by, _ in undone)
        if undone:
            self.left = dict.fromkeys(cluster for _, cluster in undone) | self.left

    def take(self, by: int) -> int | None:
        """Takes a cluster, which then never starts, for cluster `by`; None if the request fails."""
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
