"""Runs clusters one after the other in compiled code, up to one that needs Python (jit/loop_series.py).

This requires that there are no observers, that the order is not random, and that the kernel's units keep no
state that Python must clear for each cluster.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ptxsim.isa.special_registers import depends_on_cluster, special_value
from ptxsim.jit.compiled import code_address
from ptxsim.jit.loop_series import NONE_STANDS, run_each
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.plain_programs import is_plain

AT_ONCE = 256  # clusters


class ClusterSeries:
    """The clusters of one launch that a process runs."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        special = [(key[1], slot) for key, slot in cluster.program.slots.constants[2] if key[0] == "special"]
        changing = [(name, slot) for name, slot in special if depends_on_cluster(name)]
        self.names = [name for name, _ in changing]
        self.slots = np.array([slot for _, slot in changing], np.int64)
        self.chosen: range = range(0)  # clusters that `values` describes
        self.values: np.ndarray = np.empty((0, 0, 0), np.uint64)
        self.loop = code_address(cluster.loop)
        cluster.begin(0)
        cluster.clear()
        found = cluster.predicates, cluster.split_table, cluster.living
        self.start = cluster.fresh, *(array.copy() for array in found)

    def run(self, rest: range) -> tuple[int, bool]:
        """Runs clusters from the first of `rest` on; returns (how many have ended, whether the next one has
        begun and stands at something that Python must do: then call its `run`).
        """
        if not self.chosen or rest[0] not in self.chosen or rest.step != self.chosen.step:
            self.chosen = rest[:AT_ONCE]
            self.values = self._values(self.chosen)
        cluster, first = self.cluster, self.chosen.index(rest[0])
        tables = cluster.split_table, cluster.group_table, cluster.living, cluster.batch.members
        memory = cluster.shared, cluster.local, cluster.local_written
        files = cluster.registers, cluster.predicates
        end, reason, executed = run_each(
            self.loop, cluster.control, files, tables, memory, self.start, self.slots, self.values, first
        )
        stands = reason != NONE_STANDS
        for index in self.chosen[first : end + stands]:
            cluster.launch.not_started.begin(index)
        if stands:
            cluster.begin(self.chosen[end])
            cluster.queue.clear()
            cluster.batch.stopped = reason
            cluster.watchdog.livelock.first = executed
        return end - first, stands

    def _values(self, chosen: range) -> np.ndarray:
        """uint64 (clusters, slots, CTAs): values of the special registers that differ between clusters."""
        launch: Any = self.cluster.launch  # its index arithmetic works on arrays of indices, too
        indices = np.array(chosen)
        them = SimpleNamespace(index=indices, cta_ids=launch.cluster_cta_ids(indices), warps_per_cta=1)
        values = np.empty((len(chosen), len(self.slots), self.cluster.ctas), np.uint64)
        for k, name in enumerate(self.names):
            for rank in range(self.cluster.ctas):
                values[:, k, rank] = special_value(name, launch, them, rank, None)
        return values


def runs_in_series(cluster: Cluster) -> bool:
    """Whether this launch's clusters can run one after the other in compiled code."""
    by_rule = not cluster.bus.heard and not cluster.late.on and isinstance(cluster.order, str)
    return by_rule and is_plain(cluster.program)
