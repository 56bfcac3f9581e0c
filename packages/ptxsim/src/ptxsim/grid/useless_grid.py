"""Detects grids that are far too large: many clusters in a row compute for a while but change nothing, or
leave the tensors so often that each of them may.

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
        self.work, self.memory, self.outside = self._seen() if count > LEFT else (0, 0, 0)

    def give_up(self, done: int) -> bool:
        """Whether the clusters after the first `done` are not worth running; if so, adds the finding."""
        if done < self.next or self.count - done < LEFT:
            return False
        before, memory, outside = self.work, self.memory, self.outside
        self.work, self.memory, self.outside = self._seen()
        strays = self.outside - outside >= IN_A_ROW
        self.next = done + IN_A_ROW
        if (self.memory != memory and not strays) or self.work - before < BUSY * IN_A_ROW:
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

    def _seen(self) -> tuple[int, int, int]:
        """The work so far, in instructions, a checksum of global memory, and errors outside of the arrays."""
        cluster = self.runner.cluster
        work = cluster.executed() + BUSY * cluster.tensor_operations + cluster.tma_bytes
        found = cluster.reporter.by_identity.values()
        outside = sum(f.count for f in found if (f.kind, f.severity) == ("out-of-bounds", "error"))
        return work, memory_of(cluster), outside
