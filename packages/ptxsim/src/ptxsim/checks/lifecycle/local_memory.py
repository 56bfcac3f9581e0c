"""Local memory that a thread reads before it has written it.

Its contents are undefined when a launch begins (PTX ISA 5.1.5; only .global and .const variables have initial
values, 5.4.4): on a chip, whatever another thread or an earlier launch has left there. A load is a `review`:
a compiler copies a struct together with the padding between its members.
"""

from __future__ import annotations

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.observer import Observer
from ptxsim.events.views import Cluster, Launch
from ptxsim.isa.address_map import LOCAL_BASE
from ptxsim.report.findings import Reporter
from ptxsim.report.names import local_place


class LocalMemory(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter, self.on = reporter, launch.program.local_bytes > 0

    def local_accesses(self, cluster: Cluster, log: np.ndarray) -> None:
        for row, thread, place, size in log.tolist():
            cause = CAUSES["unwritten-local"]
            name = local_place(cluster.program.local_offsets, place - LOCAL_BASE)
            text = cause.tell(size=size >> 1, name=name)
            where = cluster.splits[thread // 32 * 32].at(1 << thread % 32, row)
            key = ("local", name.partition(" + ")[0])
            self.reporter.add("uninitialized", "review", text, cause, where, key=key, name=name)
