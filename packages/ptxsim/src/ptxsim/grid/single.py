"""One cluster after another in program order, for who counts or times what they do and reports nothing."""

from __future__ import annotations

from ptxsim.checks.diagnosis.deadlock.explain import explain
from ptxsim.events.bus import SILENT, Bus
from ptxsim.events.observer import Observer
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.launch_view import Launch
from ptxsim.report.findings import Reporter


def single_cluster(launch: Launch, *listeners: Observer) -> Cluster:
    """A cluster of the launch, not started: `start(index)` and `run()` may follow as often as one likes."""
    reporter = Reporter([], launch.memory, launch.shared_dynamic, launch.source)
    return Cluster(launch, "program", reporter, Bus(listeners) if listeners else SILENT, explain)
