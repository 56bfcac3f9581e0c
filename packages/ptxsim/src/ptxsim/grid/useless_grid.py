"""Grids that are far too long: clusters in a row that compute for a while and change nothing.

A chip is done with them in milliseconds. Here a grid of elements where one of tiles was meant has 16,384
times as many CTAs and would take hours, nearly all of it outside the tensors.
"""

from __future__ import annotations

import math
import zlib

from ptxsim.causes.catalogue import CAUSES
from ptxsim.grid.repeats.runner import Runner

IN_A_ROW = 256  # clusters whose work is looked at together
LEFT = 16 * IN_A_ROW  # clusters still to come, below which it does not matter
BUSY = 2000  # instructions and bytes copied of a cluster, below which it is cheap; an MMA counts as much


class UselessGrid:
    """Looks at the clusters that one process runs."""

    def __init__(self, runner: Runner, count: int):
        """count: of the clusters that this process has to run."""
        self.runner, self.count, self.next = runner, count, IN_A_ROW
        self.work, self.memory = self._seen() if count > LEFT else (0, 0)

    def give_up(self, done: int) -> bool:
        """Whether, after this many clusters, the rest is not worth running; writes the finding if so."""
        if done < self.next or self.count - done < LEFT:
            return False
        (before, memory), (self.work, self.memory) = (self.work, self.memory), self._seen()
        self.next = done + IN_A_ROW
        if self.memory != memory or self.work - before < BUSY * IN_A_ROW:
            return False
        cluster = self.runner.cluster
        launch = cluster.launch
        total = math.prod(launch.clusters)
        unit = "CTAs" if launch.ctas_per_cluster == 1 else "clusters"
        message = (
            f"{IN_A_ROW} {unit} in a row changed nothing in global memory, and thousands of the grid's "
            f"{total} are left. The run was given up"
        )
        cluster.reporter.add("deadlock", "incomplete", message, CAUSES["grid"], None, ("grid",))
        return True

    def _seen(self) -> tuple[int, int]:
        """The work up to now, in instructions, and a number for what global memory holds."""
        number, cluster = 0, self.runner.cluster
        for array in cluster.launch.memory.arrays:
            number = zlib.crc32(array, number)
        return cluster.executed() + BUSY * cluster.tensor_operations + cluster.tma_bytes, number
