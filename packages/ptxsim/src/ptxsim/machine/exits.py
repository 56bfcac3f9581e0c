"""Handles lanes that have left the kernel: barriers count only the threads that are still running."""

from __future__ import annotations

from ptxsim.jit import bytecode
from ptxsim.machine.cluster_view import Cluster


def take_leave(cluster: Cluster) -> None:
    """Updates `alive` for the lanes that are no longer in `living`, and wakes splits that waited for them."""
    cluster.control[bytecode.LEFT] = 0
    ctas = set()
    for w, live in enumerate(cluster.living.tolist()):
        if live != cluster.alive[w]:
            cluster.alive[w] = live
            ctas.add(w // cluster.warps_per_cta)
            for key in [k for k in cluster.waiting if k[0] in ("meet", "gather") and k[1] == w]:
                cluster.wake(key)
    cluster.effects += 1
    for hook in cluster.launch.exit_hooks:
        for cta in sorted(ctas):
            hook(cluster, cta)
