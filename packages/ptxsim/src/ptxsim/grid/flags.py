"""Further runs of a launch whose threads look at flags in memory: others come first.

A poll that ends too early goes unnoticed in a run that happens to set the flag before. One run starts
clusters in the order of their indices, and runs the warps of each by turns; a chip promises neither (CUDA
Programming Guide, "Thread Hierarchy"). So if the first run is right, all clusters run at the same time as
well, the last one first; and warps run by their numbers, upwards and downwards. What goes wrong only then is
an `error` of the launch. Memory is left as the first run left it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from ptxsim.frontend.ast import Instr
from ptxsim.grid import late_checks
from ptxsim.grid.co_resident import Together, any_talks, fit
from ptxsim.grid.processes import Part, reporter_for
from ptxsim.isa.memory_access import LOOKS
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.late_operations import Late, Order, base_of
from ptxsim.machine.launch_view import Launch

MOST_BYTES = 1 << 28  # of global memory, which is kept twice
MOST_INSTRUCTIONS = 1 << 19  # warp instructions of a run that is repeated
CLUSTERS, WARPS = "the clusters start in another order than that of their indices", "other warps run first"
Run = Callable[[Order], Part]


def run_other_ways(launch: Launch, run: Run, names: list, order: Order) -> Part:
    """Runs the launch, perhaps several times; returns a Part. run(order) runs it once."""
    looks = [one for one in launch.program.by_row.values() if _looks(one)]
    bytes_kept = sum(array.nbytes for array in launch.memory.arrays)
    if not looks or bytes_kept > MOST_BYTES or isinstance(order, Late):
        return run(order)
    before = launch.memory.copies()
    part = run(order)
    wrong = part.reporter.verdict() not in ("clean", "review")
    if wrong or part.stats["warp_instructions"] > MOST_INSTRUCTIONS:
        return part
    left = launch.memory.copies()
    for when, another in _ways(launch, run, names, order, looks):
        launch.memory.restore(before)
        found = another().reporter.by_identity
        if errors := [key for key, one in found.items() if one.severity == "error"]:
            first = found[errors[0]]
            part.reporter.by_identity[errors[0]] = replace(first, message=f"{first.message}, if {when}")
            break
    launch.memory.restore(left)
    return part


def _looks(instr: Instr) -> bool:
    """Whether the instruction may tell its thread what another one has written to memory."""
    return instr.op == "atom" or (instr.op == "ld" and bool(LOOKS & set(instr.mods)))


def _ways(launch: Launch, run: Run, names: list, order: Order, looks: list[Instr]) -> Iterator[tuple]:
    """(what they change, a function that runs the launch so) of the other ways."""
    count, warps = math.prod(launch.clusters), launch.ctas_per_cluster * launch.warps_per_cta
    takes = any(one.op == "clusterlaunchcontrol" for one in launch.program.by_row.values())
    if any_talks(looks) and not takes and 1 < count <= min(fit(launch), late_checks.most_checked()):
        yield CLUSTERS, lambda: backwards(launch, names, order)
    if warps > 1:
        yield WARPS, lambda: run(Late("program", ranks=tuple(range(warps))))
        yield WARPS, lambda: run(Late("program", ranks=tuple(reversed(range(warps)))))


def backwards(launch: Launch, names: list, order: Order) -> Part:
    """Runs all clusters by turns, the last one first."""
    every, reporter = range(math.prod(launch.clusters)), reporter_for(launch, names)
    launch.not_started.offer(every, base_of(order), fit(launch))
    bus = late_checks.bus_for(launch, reporter, True, ())
    cluster = Cluster(launch, order, reporter, bus, late_checks.explain)
    launch.not_started.begin(every[-1])
    cluster.start(every[-1])
    Together(cluster, every[-2::-1], at_once=True).run()
    return Part(reporter, {})
