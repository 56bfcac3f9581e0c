"""Estimates from first requests how many clusters of a wave read the same part of an array."""

from __future__ import annotations

import contextlib
import math
from collections import Counter, defaultdict

from ptxsim.events.observer import Observer
from ptxsim.events.records import BulkCopy
from ptxsim.events.views import Cluster, Split
from ptxsim.grid.single import single_cluster
from ptxsim.jit import bytecode
from ptxsim.jit.translate import is_shared
from ptxsim.machine.blas import one_thread
from ptxsim.machine.launch_view import Launch
from ptxsim.timing.execution import Execution
from ptxsim.timing.listening import listens

MOST = 148  # clusters that are examined at most


class _Enough(Exception):
    """Stops a run: every wanted array has been read."""


class FirstReads(Observer):
    """Notes the first address that a cluster reads of every wanted array."""

    def __init__(self, memory, wanted: set[int]):
        self.memory, self.wanted = memory, wanted
        self.first: dict[int, int] = {}

    def start(self, cluster: Cluster) -> None:
        self.first = {}

    def _note(self, segment: int, address: int) -> None:
        if segment in self.wanted:
            self.first.setdefault(segment, address)
        if len(self.first) == len(self.wanted):
            raise _Enough

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> None:
        if copy.kind == "load":
            steps = (copy.tensor.dtype.itemsize, *copy.tensor.strides)
            address = sum(a * b for a, b in zip(copy.start, steps, strict=True))
            self._note(copy.tensor.segment, address)

    def cp_async_issue(self, cluster: Cluster, split: Split, reads, writes):
        self.accesses(cluster, reads)

    def accesses(self, cluster: Cluster, log) -> None:
        places = log[:, bytecode.LOG_PLACE]
        for place, outside in zip(places.tolist(), (~is_shared(places)).tolist(), strict=True):
            if outside:
                self._note(self.memory.find(place), place)


def sharers(launch: Launch, reads: dict[int, int], together: int) -> dict[int, float]:
    """Array -> how many of the first `together` clusters read the same line at the same time."""
    count = min(together, MOST, math.prod(launch.clusters))
    if not reads or listens(launch.program) or count < 2:
        return dict.fromkeys(reads, 1.0)
    observer = FirstReads(launch.memory, set(reads))
    cluster = single_cluster(launch, observer)
    first: dict[int, set[int]] = defaultdict(set)
    with one_thread():
        for index in range(count):
            for left_over in (bytecode.LOG_USED, bytecode.EXITED, bytecode.ISSUED):  # of a run cut short
                cluster.control[left_over] = 0
            cluster.start(index)
            with contextlib.suppress(_Enough):
                cluster.run()
            for segment, address in observer.first.items():
                first[segment].add(address)
    return {segment: count / len(first[segment]) if first[segment] else 1.0 for segment in reads}


def tiles_of(execution: Execution) -> int:
    """Tiles that a cluster processes in turn (a persistent kernel's), counted by jumps of its TMA loads.

    Within a tile the addresses in an array advance by a few recurring steps; rarer steps are jumps.
    """
    most = 1
    last: dict[tuple[int, int], int] = {}
    steps: dict[tuple[int, int], Counter] = defaultdict(Counter)
    for number in sorted(execution.copies):
        copy = execution.copies[number]
        key = execution.events[number].cta, copy.segment
        if not copy.write and copy.box:
            if key in last:
                steps[key][copy.address - last[key]] += 1
            last[key] = copy.address
    for found in steps.values():
        usual = max(found.values()) / 4
        most = max(most, 1 + sum(count for count in found.values() if count < usual))
    return most
