"""Keeps the Cluster of a launch without observers for the next launch of the same kernel and shape.

Making a new one, with its registers, shared and tensor memory, takes longer than many kernels run.
"""

from __future__ import annotations

from typing import Any

from ptxsim.machine.launch_view import Launch


class KeptCluster:
    """Holds at most one Cluster of a kernel between launches."""

    def __init__(self):
        self._kept: tuple[tuple, Any] | None = None

    def take(self, launch: Launch) -> Any:
        """Takes out the kept Cluster if it fits the launch, else None. The caller must call `belong_to`."""
        kept, self._kept = self._kept, None
        return kept[1] if kept is not None and kept[0] == _shape(launch) else None

    def give_back(self, cluster) -> None:
        """Keeps a Cluster whose launch has ended without findings."""
        shape = _shape(cluster.launch)
        cluster.let_go()
        self._kept = shape, cluster


def _shape(launch: Launch) -> tuple:
    return launch.threads, launch.ctas_per_cluster, -(-launch.shared_end // 1024)
