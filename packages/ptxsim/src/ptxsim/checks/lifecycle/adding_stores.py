"""Bulk stores that add to an array: noted until the launch knows whether the array had been written before
(unwritten_outputs.py).
"""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.observer import Observer
from ptxsim.events.records import BulkCopy
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.report.findings import Reporter


class AddingStores(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> None:
        name = copy.tensor.name
        if copy.kind != "store" or not copy.reduces or not name:
            return
        cause = CAUSES["adds-to-nothing"]
        text = cause.tell(name=name)
        self.reporter.add("uninitialized", "review", text, cause, split, ("adds", name), adds=name)
