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


class LocalMemory(Observer):
    def __init__(self, launch: Launch, reporter):
        self.reporter, self.on = reporter, launch.program.local_bytes > 0
        self.names = [(at, name) for name, at in launch.program.local_offsets.items()]

    def local_accesses(self, cluster: Cluster, log: np.ndarray) -> None:
        for row, thread, place, size in log.tolist():
            offset = place - LOCAL_BASE
            start, name = max(one for one in self.names if one[0] <= offset)
            cause = CAUSES["unwritten-local"]
            place = f"{name} + {offset - start} B"
            text = cause.tell(size=size >> 1, name=place)
            where = cluster.splits[thread // 32 * 32].at(1 << thread % 32, row)
            self.reporter.add("uninitialized", "review", text, cause, where, key=("local", name), name=place)
