"""Clusters that wait for each other through global memory run as on a chip: as many at a time as fit on it.

A cluster that only polls is suspended while others start or continue. If no resident cluster makes progress,
that is a deadlock, even if clusters that have not started could help: a chip would not start them.
"""

from __future__ import annotations

import functools
from collections import deque

from ptxsim.isa.memory_access import ELSEWHERE, LOOKS
from ptxsim.isa.special_registers import SMS
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.launch_view import Launch
from ptxsim.machine.occupancy import ctas_per_sm
from ptxsim.machine.tensor_memory import COLUMNS


@functools.lru_cache(maxsize=16)
def talks(program) -> bool:
    """Whether CTAs may communicate through global memory: by atomics, reductions or strong loads."""
    return any_talks(program.instrs)


def any_talks(instrs: list) -> bool:
    return any(_talks(instr.op, set(instr.mods)) for instr in instrs if instr is not None)


def _talks(op: str, mods: set[str]) -> bool:
    if op == "cp":
        return "reduce" in mods
    if op == "ld" and not mods & LOOKS:
        return False
    return op in ("ld", "atom", "red") and not mods & ELSEWHERE


def fit(launch: Launch) -> int:
    """How many clusters are resident on the chip at the same time (ignoring the limit set by registers)."""
    return max(1, SMS * ctas_per_sm(launch) // launch.ctas_per_cluster)


def get_on(first: Cluster) -> int:
    """How many clusters can hold tensor memory at the same time (ignoring the limit set by registers).

    An SM has 512 columns for all of its CTAs: if too few are free, tcgen05.alloc waits (9.7.16.7.1).
    """
    held = max((sum(memory.sizes.values()) for memory in first.tmem), default=0)
    by_columns = SMS * (COLUMNS // held) // first.launch.ctas_per_cluster if held else fit(first.launch)
    return max(1, min(by_columns, fit(first.launch)))


def run_together(first: Cluster, rest: range) -> tuple[list[Cluster], int]:
    """Continues a cluster that polls, together with the clusters of `rest`.

    Returns (all Cluster objects used, how many clusters ended). The clusters of `rest` are not checked; a
    finding says so.
    """
    if first.bus.heard and rest:
        first.reporter.add(
            "unsupported", "incomplete",
            f"cluster {first.index} waits for other clusters: those that start after it are not checked",
        )  # fmt: skip
    idle: list = []
    used, waiting, not_started = [first], deque([first]), deque(rest)
    done = futile = 0
    most = get_on(first)
    while waiting or not_started:
        done += _without_taken(not_started, first.launch)
        room = bool(not_started) and len(waiting) < most
        if futile > len(waiting) and not room:
            waiting[0].run()  # reports the deadlock
            break
        if not (room or waiting):
            break
        cluster = _next(used, idle, not_started) if room else waiting.popleft()
        cluster.watchdog.moved = False
        if cluster.run(alone=False):
            done, futile = done + 1, 0
            idle.append(cluster)
            if cluster.stuck:
                break
        else:
            futile = 0 if cluster.watchdog.moved else futile + 1
            waiting.append(cluster)
    return used, done


def _without_taken(not_started: deque, launch) -> int:
    """Drops clusters at the head of the queue that a running one has taken (clusterlaunchcontrol); returns
    their number.
    """
    count = len(not_started)
    while not_started and not_started[0] not in launch.not_started.left:
        not_started.popleft()
    return count - len(not_started)


def _next(used: list[Cluster], idle: list[Cluster], not_started: deque) -> Cluster:
    """Starts the next cluster of the grid and returns it."""
    if not idle:
        first = used[0]
        idle.append(
            Cluster(first.launch, first.late.order or first.order, first.reporter, explain=first.explain)
        )
        used.append(idle[-1])
    cluster = idle.pop()
    index = not_started.popleft()
    cluster.launch.not_started.begin(index)
    cluster.start(index)
    return cluster
