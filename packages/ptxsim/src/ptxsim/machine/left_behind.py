"""Effects of compiled unit code that the Python side has not seen yet: counters and wake-ups."""

from __future__ import annotations

from ptxsim.jit import bytecode
from ptxsim.machine.cluster_view import Cluster


def take_over(cluster: Cluster) -> None:
    control = cluster.control
    cluster.tensor_operations += control.item(bytecode.TENSOR_OPERATIONS)
    cluster.effects += control.item(bytecode.CHANGED)
    control[bytecode.TENSOR_OPERATIONS] = control[bytecode.CHANGED] = 0
    if control[bytecode.REMADE]:
        cluster.mbarriers.learn()
    if control[bytecode.PHASES_DONE]:
        for place in cluster.mbarriers.went_on():
            cluster.wake(("mbarrier", place))
    if control[bytecode.COPIES]:
        for stores, tmap, start in cluster.maps.copies():
            cluster.watchdog.livelock.copies("store" if stores else "load", tmap, start)
            cluster.tma_bytes += tmap.box_bytes
