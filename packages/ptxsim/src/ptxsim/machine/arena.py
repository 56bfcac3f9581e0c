"""The cluster of a launch that nobody listened to, kept for the next launch of its kernel and shape: to make
one, with its registers, shared and tensor memory, takes longer than many a kernel runs.
"""

from __future__ import annotations

from typing import Any

from ptxsim.machine.launch_view import Launch


class Arena:
    """What launches of one kernel leave each other."""

    def __init__(self):
        self._kept: tuple[tuple, Any] | None = None

    def take(self, launch: Launch) -> Any:
        """A cluster that fits, which is to `belong_to` the launch; None if there is none."""
        kept, self._kept = self._kept, None
        return kept[1] if kept is not None and kept[0] == _shape(launch) else None

    def give_back(self, cluster) -> None:
        """One whose launch is over, and ended as it should."""
        shape = _shape(cluster.launch)
        cluster.let_go()
        self._kept = shape, cluster


def _shape(launch: Launch) -> tuple:
    return launch.threads, launch.ctas_per_cluster, -(-launch.shared_end // 1024)
