"""Bulk async-groups of a thread: which copies have read their source, and which have written their data (PTX
ISA 9.7.9.25.4).
"""

from __future__ import annotations

import numpy as np

from ptxsim.jit import bytecode
from ptxsim.jit.called import ParameterBlock, called
from ptxsim.jit.intrinsics import column
from ptxsim.jit.loop_memory import word
from ptxsim.machine.async_queue import Work
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Lanes, Origin, Split, Wait
from ptxsim.units.registry import FastForm, always, unit


def each_lane(split: Split) -> list[Origin]:
    """The active threads of a split, one by one, for instructions that act per thread."""
    if split.one_lane:
        return [split.at()]
    return [split.at(1 << int(lane)) for lane in split.lanes]


class BulkGroup:
    """One bulk async-group: how many copies have yet to read their source, and how many to write."""

    __slots__ = ("reads", "writes")

    def __init__(self):
        self.reads = self.writes = 0


class GroupsOfThread:
    """The groups of a thread that stores: committed ones that are not complete, and the open one."""

    __slots__ = ("pending", "open")

    def __init__(self):
        self.pending: dict[int, BulkGroup] = {}  # number -> group
        self.open = BulkGroup()

    def close(self, number: int) -> None:
        if self.open.writes:
            self.pending[number], self.open = self.open, BulkGroup()

    def unfinished(self, latest: int, reading: bool) -> int:
        """How many groups up to number `latest` have yet to read or write; removes completed groups."""
        if not self.pending:
            return 0
        self.pending = {number: group for number, group in self.pending.items() if group.writes}
        old = [group for number, group in self.pending.items() if number <= latest]
        return sum(bool(group.reads if reading else group.writes) for group in old)


class BulkGroups:
    """The groups of a warp. Often all lanes commit but only one stores; the others' groups are empty."""

    __slots__ = ("committed", "storing")

    def __init__(self):
        self.committed = np.zeros(32, np.int64)  # number of groups that each lane has committed
        self.storing: dict[int, GroupsOfThread] = {}  # by lane


def bulk_groups(cluster: Cluster, warp: int) -> BulkGroups:
    """The groups of a warp of the cluster."""
    key = "bulk", warp
    if key not in cluster.unit_state:
        cluster.unit_state[key] = BulkGroups()
    return cluster.unit_state[key]


def open_group(cluster: Cluster, split: Lanes) -> BulkGroup:
    """Adds a copy to the uncommitted group of a thread; returns the group."""
    storing = bulk_groups(cluster, split.warp).storing
    group = storing.setdefault(split.leader, GroupsOfThread()).open
    group.reads += 1
    group.writes += 1
    return group


def store(cluster: Cluster, split: Lanes, what: str, groups: list[BulkGroup], read, write) -> None:
    """Submits a copy out of shared memory, in two pieces of work: after data = read() the source may be
    overwritten, after write(data) the copy is complete.
    """

    def first() -> None:
        data = read()
        for group in groups:
            group.reads -= 1
        cluster.wake(("bulk", split.warp))
        cluster.engine.submit(Work(None, lambda: second(data), f"{what} (write)"))

    def second(data) -> None:
        write(data)
        for group in groups:
            group.writes -= 1
        cluster.wake(("bulk", split.warp))

    cluster.engine.submit(Work(None, first, f"{what} (read)"))


@called
def nothing_pending(row, m, warp, registers, predicates, control):
    """A commit or wait without pending copies: all work completes at once. A wait goes to the handler while
    issued instructions have not been handed over.
    """
    waits = word(column(row, bytecode.CALLED_BLOCK), 0)
    return int(word(control, bytecode.EAGER) != 0 and not (waits and word(control, bytecode.ISSUED)))


_COMMITS = FastForm(lambda instr, args, unset: ParameterBlock(0), called=nothing_pending)
_WAITS = FastForm(lambda instr, args, unset: ParameterBlock(1), called=nothing_pending)


@unit("cp.async.bulk.commit_group", section="9.7.9.25.4", fire_and_forget=True, fast=_COMMITS)
@always
def commit_group(cluster: Cluster, split: Split, args):
    groups = bulk_groups(cluster, split.warp)
    groups.committed[split.lanes] += 1
    for lane, thread in groups.storing.items():
        if split.mask >> lane & 1:
            thread.close(groups.committed.item(lane))
    cluster.bus.bulk_commit(cluster, split)


@unit("cp.async.bulk.wait_group {.read} n", section="9.7.9.25.4", fast=_WAITS)
def wait_group(instr):
    reading = "read" in instr.mods

    def run(cluster: Cluster, split: Split, args):
        allowed, groups = cluster.scalar(split, args[0]), bulk_groups(cluster, split.warp)
        for lane, thread in groups.storing.items():
            latest = groups.committed.item(lane) - allowed
            pending = thread.unfinished(latest, reading) if split.mask >> lane & 1 else 0
            if pending:
                detail = {"allowed": allowed, "pending": pending}
                return cluster.wait(split, Wait("group", ("bulk", split.warp), detail))
        cluster.bus.bulk_wait(cluster, split, allowed, reading)
        return None

    return run
