"""A second run of clusters that look at what others tell them in global memory: the last one starts first.

One run starts clusters in the order of their indices, so that a poll finds its flag set. On a chip they start
in any order (PTX ISA 2.2.1), and a poll that lets its thread through too early then reads what is not there
yet. So if the first run is right, all clusters run at the same time as well, in the opposite order; what goes
wrong only then is an `error` of the launch. Memory is left as the first run left it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ptxsim.grid import late_checks
from ptxsim.grid.co_resident import Together, fit
from ptxsim.grid.processes import reporter_for
from ptxsim.isa.memory_access import ELSEWHERE, LOOKS
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.late_operations import Order, base_of
from ptxsim.machine.launch_view import Launch
from ptxsim.report.findings import Finding, Reporter

MOST_BYTES = 1 << 28  # of global memory, which is kept twice
WHEN = "if the clusters start in another order than that of their indices"


def run_both_ways(launch: Launch, run: Callable[[Order], Any], names: list, order: Order):
    """Runs the launch, perhaps twice; returns a Part. run(order) runs it once and returns its Part."""
    if not (isinstance(order, str | int) and _looks(launch)):
        return run(order)
    before = launch.memory.copies()
    part = run(order)
    if _wrong(part.reporter):
        return part
    left = launch.memory.copies()
    launch.memory.restore(before)
    found = _wrong(backwards(launch, names, order))
    launch.memory.restore(left)
    for identity, finding in list(found.items())[:1]:
        part.reporter.by_identity[identity] = replace(finding, message=f"{finding.message}, {WHEN}")
    return part


def _looks(launch: Launch) -> bool:
    """Whether a cluster can see what another one has told it, and all of them can run at the same time."""
    count, instrs = math.prod(launch.clusters), launch.program.by_row.values()
    if not 1 < count <= min(fit(launch), late_checks.most_checked()):
        return False
    if sum(array.nbytes for array in launch.memory.arrays) > MOST_BYTES:
        return False
    asks = any(_asks(one.op, set(one.mods)) for one in instrs)
    return asks and not any(one.op == "clusterlaunchcontrol" for one in instrs)


def _asks(op: str, mods: set[str]) -> bool:
    return not mods & ELSEWHERE and (op == "atom" or op == "ld" and bool(mods & LOOKS))


def _wrong(reporter: Reporter) -> dict[tuple, Finding]:
    return {key: one for key, one in reporter.by_identity.items() if one.severity != "review"}


def backwards(launch: Launch, names: list, order: Order) -> Reporter:
    """Runs all clusters, the last one first."""
    every, reporter = range(math.prod(launch.clusters)), reporter_for(launch, names)
    launch.not_started.offer(every, base_of(order), fit(launch))
    bus = late_checks.bus_for(launch, reporter, True, ())
    cluster = Cluster(launch, order, reporter, bus, late_checks.explain)
    launch.not_started.begin(every[-1])
    cluster.start(every[-1])
    Together(cluster, every[-2::-1], at_once=True).run()
    return reporter
