"""Runs single clusters in program order, for callers that count or time their work and report no findings."""

from __future__ import annotations

from ptxsim.events.bus import SILENT, Bus
from ptxsim.events.observer import Observer
from ptxsim.grid.late_checks import explain
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.launch_view import Launch
from ptxsim.report.findings import Reporter


def single_cluster(launch: Launch, *listeners: Observer) -> Cluster:
    """A cluster of the launch, not started; `start(index)` and `run()` may follow any number of times."""
    reporter = Reporter([], launch.memory, launch.shared_dynamic, launch.source)
    return Cluster(launch, "program", reporter, Bus(listeners) if listeners else SILENT, explain)
