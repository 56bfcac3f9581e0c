"""The checks as a grid uses them, imported when a launch first asks for them.

A prediction or a launch without checks never does; importing over a hundred modules would take it 60 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxsim.events.bus import SILENT, Bus, Silent
from ptxsim.events.observer import Observer
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.launch_view import Launch
from ptxsim.report.findings import Finding, Reporter

if TYPE_CHECKING:
    from ptxsim.grid.repeats.recording import Recordings


def bus_for(launch: Launch, reporter: Reporter, checks: bool, extra: tuple[Observer, ...]) -> Bus | Silent:
    """An event bus with all checks if `checks`, then `extra`; SILENT if there is no listener."""
    if not checks:
        return Bus(extra, in_place=True) if extra else SILENT
    from ptxsim.checks.all_checks import checking_bus

    return checking_bus(launch, reporter, extra)


def bus_beside(first: Bus | Silent, launch: Launch, reporter: Reporter) -> Bus | Silent:
    """The bus of a cluster that runs beside that of `first`: with all checks, if that one has them."""
    from ptxsim.checks import all_checks

    return all_checks.bus_beside(first, launch, reporter)


def checked_together(bus: Bus | Silent, others: int) -> bool:
    """Whether so many other clusters can be checked while they run together with the one of this bus."""
    if not bus.heard:
        return False
    from ptxsim.checks.race.across_processes import detector

    return detector(bus) is not None and others < most_checked()


def most_checked() -> int:
    """How many clusters that run together can be checked."""
    from ptxsim.checks.race.older_writes import MOST_CHECKED

    return MOST_CHECKED


def recordings(bus: Bus) -> Recordings:
    """The recordings of clusters that are checked by this bus."""
    from ptxsim.grid.repeats.recording import Recordings

    return Recordings(bus)


def conflict(bus: Bus | Silent, summaries: list[dict[str, np.ndarray]]) -> bool:
    """Whether clusters of different processes may conflict, by what each process accessed (`summary`)."""
    if not bus.heard:
        return False
    from ptxsim.checks.race import across_processes

    return across_processes.conflict(bus, summaries)


def summary(bus: Bus | Silent, clusters) -> dict[str, np.ndarray]:
    """What these clusters, the last that ran in this process, have accessed."""
    if not bus.heard:
        return {}
    from ptxsim.checks.race import across_processes

    return across_processes.summary(bus, clusters)


def explain(cluster: Cluster, reporter: Reporter) -> Finding:
    """The finding about a cluster whose threads are all stuck."""
    from ptxsim.checks.diagnosis.deadlock.explain import explain

    return explain(cluster, reporter)
