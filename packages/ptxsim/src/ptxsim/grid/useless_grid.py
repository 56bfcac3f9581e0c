"""Detects grids that are far too large: many clusters in a row compute for a while but change nothing, or
each of them leaves the tensors.

A chip finishes such a grid in milliseconds. The simulator would take hours: a grid counted in elements
instead of tiles of 128 x 128 has 16,384 times as many CTAs, nearly all of them outside the tensors.
"""

from __future__ import annotations

import math

from ptxsim.causes.catalogue import CAUSES
from ptxsim.grid.repeats.runner import Runner
from ptxsim.machine.endless import memory_of

IN_A_ROW = 256  # clusters whose work is judged together
LEFT = 16 * IN_A_ROW  # remaining clusters below which the run is not worth giving up
BUSY = 2000  # instructions plus bytes copied below which a cluster is cheap; one MMA counts as this much, too


class UselessGrid:
    """Watches the clusters that one process runs."""

    def __init__(self, runner: Runner, count: int):
        """count: number of clusters that this process has to run."""
        self.runner, self.count, self.next = runner, count, IN_A_ROW
        self.work, self.memory = self._seen() if count > LEFT else (0, 0)
        self.done, self.outside, self.strays = 0, self._outside(), 0  # strays: clusters that left the tensors

    def give_up(self, done: int) -> bool:
        """Whether the clusters after the first `done` are not worth running; if so, adds the finding."""
        if self.count - done < LEFT:
            return False
        before, self.outside = self.outside, self._outside()
        self.strays += (done - self.done) * (self.outside > before)
        self.done = done
        if done < self.next:
            return False
        work, memory, strays = self.work, self.memory, self.strays >= IN_A_ROW
        self.work, self.memory = self._seen()
        self.next, self.strays = done + IN_A_ROW, 0
        if (self.memory != memory and not strays) or self.work - work < BUSY * IN_A_ROW:
            return False
        cluster = self.runner.cluster
        launch = cluster.launch
        total = math.prod(launch.clusters)
        unit = "CTAs" if launch.ctas_per_cluster == 1 else "clusters"
        did = "left the tensors" if strays else "changed nothing in global memory"
        message = (
            f"{IN_A_ROW} {unit} in a row {did}, and thousands of the grid's {total} are left. "
            "The run was given up"
        )
        cluster.reporter.add("deadlock", "incomplete", message, CAUSES["grid"], None, ("grid",))
        return True

    def _outside(self) -> int:
        """Accesses outside of the arrays so far."""
        found = self.runner.cluster.reporter.by_identity.values()
        return sum(f.count for f in found if (f.kind, f.severity) == ("out-of-bounds", "error"))

    def _seen(self) -> tuple[int, int]:
        """The work so far, in instructions, and a checksum of global memory."""
        cluster = self.runner.cluster
        work = cluster.executed() + BUSY * cluster.tensor_operations + cluster.tma_bytes
        return work, memory_of(cluster)
