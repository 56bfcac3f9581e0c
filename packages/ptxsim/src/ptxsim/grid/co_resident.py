"""Clusters that wait for each other through global memory run as on a chip: as many at a time as fit on it.

A cluster that only polls is suspended while others start or continue. If no resident cluster makes progress,
that is a deadlock, even if clusters that have not started could help: a chip would not start them. With
checks, every cluster has a bus of its own, and they share the history of global memory.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Sequence

from ptxsim.events.bus import SILENT
from ptxsim.frontend.ast import Instr
from ptxsim.grid.late_checks import bus_beside, checked_together
from ptxsim.isa.memory_access import ELSEWHERE, LOOKS
from ptxsim.isa.special_registers import SMS
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.control_words import describe_launch
from ptxsim.machine.late_operations import Alternating, StepByStep
from ptxsim.machine.launch_view import Launch
from ptxsim.machine.occupancy import ctas_per_sm
from ptxsim.machine.tensor_memory import COLUMNS


@functools.lru_cache(maxsize=16)
def talks(program) -> bool:
    """Whether CTAs may communicate through global memory: by atomics, reductions or strong loads."""
    return any_talks(program.by_row.values())


def any_talks(instrs: Iterable[Instr]) -> bool:
    return any(_talks(instr.op, set(instr.mods)) for instr in instrs)


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

    Returns (all Cluster objects used, how many clusters ended). If there are too many to check
    together, the clusters of `rest` are not checked; a finding says so.
    """
    together = Together(first, rest)
    together.run()
    return together.used, together.done


class Together:
    """The clusters of a grid from the first one that waits for others on."""

    def __init__(self, first: Cluster, rest: Sequence[int], at_once: bool = False):
        """at_once: whether they run together by choice, not because the first one waits for others."""
        self.pace = Alternating if at_once else StepByStep
        self.first, self.launch, self.most = first, first.launch, get_on(first)
        self.not_started = deque(rest)
        self.moves = 1  # turns in which a cluster has done something that may help others
        self.polling = {first: 0}  # cluster -> `moves` when its last turn began; the earliest comes first
        self.holding: deque[Cluster] = deque()  # those that wait until others have seen what they did
        self.idle: list[Cluster] = []  # that have ended
        self.used, self.done = [first], 0
        self.checked = checked_together(first.bus, len(rest))
        if first.bus.heard and rest and not at_once:
            self._say_what_is_not_known(first)
        if self.checked:
            self._step_by_step(first)

    def _say_what_is_not_known(self, first: Cluster) -> None:
        what = ""
        if not self.checked:
            what = "those that start after it are not checked"
        elif not self.launch.cooperative:
            what = "only a cooperative launch guarantees that those that start after it run at the same time"
        if what:
            what = f"cluster {first.index} waits for other clusters: {what}"
            first.reporter.add("unsupported", "incomplete", what)

    def run(self) -> None:
        """Runs all clusters to their end, or until one is stuck."""
        while (cluster := self._next()) and self._turn(cluster):
            pass

    def _next(self) -> Cluster | None:
        """The cluster that runs next. With checks, pollers see what one does before another acts."""
        self._leave_out_taken()
        poller, moves = next(iter(self.polling.items()), (None, self.moves))
        if self.checked and moves < self.moves:
            return poller
        if self.not_started and len(self.polling) + len(self.holding) < self.most:
            return self._start()
        if self.holding:
            return self.holding.popleft()
        if poller and moves == self.moves:
            poller.reporter.cluster = poller.index
            poller.run()  # reports the deadlock
            return None
        return poller

    def _turn(self, cluster: Cluster) -> bool:
        """Runs a cluster until it waits for others; False if it is stuck."""
        self.polling.pop(cluster, None)
        before, cluster.watchdog.moved, cluster.reporter.cluster = self.moves, False, cluster.index
        if isinstance(cluster.late, StepByStep):
            cluster.late.go_on(cluster)
        ended = cluster.run(alone=False)
        self.moves += ended or cluster.watchdog.moved
        if ended:
            self.done += 1
            self.idle.append(cluster)
        elif cluster.late.held:
            self.holding.append(cluster)
        else:
            self.polling[cluster] = before
        return not cluster.stuck

    def _leave_out_taken(self) -> None:
        """Leaves out clusters that a running one has taken (clusterlaunchcontrol)."""
        while self.not_started and self.not_started[0] not in self.launch.not_started.left:
            self.not_started.popleft()
            self.done += 1

    def _start(self) -> Cluster:
        """The next cluster of the grid, started."""
        if not self.idle:
            self.idle.append(self._another())
            self.used.append(self.idle[-1])
        cluster, index = self.idle.pop(), self.not_started.popleft()
        self.launch.not_started.begin(index)
        cluster.start(index)
        return cluster

    def _another(self) -> Cluster:
        first = self.first
        bus = bus_beside(first.bus, self.launch, first.reporter) if self.checked else SILENT
        order = first.late.order or first.order
        cluster = Cluster(self.launch, order, first.reporter, bus, explain=first.explain)
        if self.checked:
            self._step_by_step(cluster)
        return cluster

    def _step_by_step(self, cluster: Cluster) -> None:
        """The others see what a cluster changes by one atomic before it does the next."""
        if cluster.late.order is None:
            cluster.late = self.pace(cluster.order)
            cluster.late.start()
            describe_launch(cluster)
