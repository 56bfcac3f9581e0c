"""Issues a thread's instructions to the tensor core, which executes them in order (PTX ISA 9.7.16.6.2)."""

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
    """Issues `task` once for each lane of a split; `execute` does it later. More than one lane is a finding,
    whose message ends with `consequence`.
    """
    if not split.one_lane:
        message = f"{name} issued by {len(split.lanes)} lanes: {consequence}"
        cluster.reporter.add("illegal", "error", message, "issue it from one elected thread", split)
    for where in each_lane(split):
        work = TensorWork(name, name, where, group, task)
        cluster.bus.tensor_issue(cluster, where, work)
        cluster.engine.submit(Work(("tensor", where.thread), partial(execute, cluster, work), name))
