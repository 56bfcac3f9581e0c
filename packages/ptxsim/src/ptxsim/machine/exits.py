"""Lanes that have left the kernel: barriers count only the threads that are still there."""

from __future__ import annotations

from ptxsim.jit import bytecode
from ptxsim.machine.cluster_view import Cluster


def take_leave(cluster: Cluster) -> None:
    """Tells the cluster of the lanes that are in `alive`, but not in `living` any more."""
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
