"""Bulk async-groups of a thread: which copies have read their source, which written (PTX ISA 9.7.9.25.4)."""

from __future__ import annotations

from ptxsim.machine.split import Location, Wait
from ptxsim.units.registry import unit


def each_lane(split) -> list[Location]:
    """The threads of a split one by one: these instructions act per thread."""
    return [split.at(1 << int(lane)) for lane in split.lanes]


class BulkGroup:
    """Copies of one bulk async-group: how many have still to read their source, and to write."""

    __slots__ = ("reads", "writes", "committed")

    def __init__(self):
        self.reads = self.writes = 0
        self.committed = False


def _groups(cluster, split) -> list[BulkGroup]:
    return cluster.unit_state.setdefault(("bulk", split.thread), [])


def open_group(cluster, split) -> BulkGroup:
    """The uncommitted group of a thread, with one more copy in it."""
    groups = _groups(cluster, split)
    if not groups or groups[-1].committed:
        groups.append(BulkGroup())
    groups[-1].reads += 1
    groups[-1].writes += 1
    return groups[-1]


def notify(cluster, split) -> None:
    cluster.wake(("bulk", split.warp))


@unit("cp.async.bulk.commit_group", section="9.7.9.25.4", fire_and_forget=True)
def commit_group(instr):
    def run(cluster, split, args):
        for thread in each_lane(split):
            groups = _groups(cluster, thread)
            if not groups or groups[-1].committed:
                groups.append(BulkGroup())
            groups[-1].committed = True
            if cluster.checks:
                cluster.checks.bulk_commit(cluster, thread)

    return run


@unit("cp.async.bulk.wait_group {.read} n", section="9.7.9.25.4")
def wait_group(instr):
    reading = "read" in instr.mods

    def run(cluster, split, args):
        allowed = cluster.scalar(split, args[0])
        for lane in split.lanes:
            groups = [
                g for g in cluster.unit_state.get(("bulk", split.warp * 32 + int(lane)), []) if g.committed
            ]
            pending = [g for g in groups if (g.reads if reading else g.writes)]
            recent = groups[len(groups) - allowed :] if allowed else []
            if any(g not in recent for g in pending):
                return cluster.wait(
                    split, Wait("group", ("bulk", split.warp), {"allowed": allowed, "pending": len(pending)})
                )
        if cluster.checks:
            cluster.checks.bulk_wait(cluster, split, allowed, reading)
        return None

    return run
