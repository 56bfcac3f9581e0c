"""The work of a thread for its tensor core, in order (PTX ISA 9.7.16.6.2): how an instruction gets there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxsim.events.records import TensorWork
from ptxsim.machine.async_queue import Work
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.bulk_groups import each_lane


def issue(
    cluster: Cluster,
    split: Split,
    name: str,
    group: int,
    task,
    consequence: str,
    execute: Callable[[Cluster, TensorWork], None],
) -> None:
    """Each lane of a split issues `task`, to be done by `execute`; more than one is a finding with its
    consequence.
    """
    if not split.one_lane:
        message = f"{name} issued by {len(split.lanes)} lanes: {consequence}"
        cluster.reporter.add("illegal", "error", message, "one elected thread issues it", split)
    for where in each_lane(split):
        work = TensorWork(name, name, where, group, task)
        cluster.bus.tensor_issue(cluster, where, work)
        cluster.engine.submit(Work(("tensor", where.thread), partial(execute, cluster, work), name))
