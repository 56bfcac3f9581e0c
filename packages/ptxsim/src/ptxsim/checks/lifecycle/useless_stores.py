"""Clusters whose TMA stores all lie outside of the tensor: their work is for nothing (PTX ISA 9.7.9.27.1.2).

One that stores a part of its tile inside is at the tensor's edge, which is right.
"""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.observer import Observer
from ptxsim.events.records import BulkCopy
from ptxsim.machine.launch_view import Launch


class UselessStores(Observer):
    def __init__(self, launch: Launch, reporter):
        self.reporter = reporter

    def start(self, cluster) -> None:
        self.stores: dict[int, list] = {}  # of a map -> [map, first place, boxes outside, inside]

    def copy_write(self, cluster, token, copy: BulkCopy) -> None:
        if copy.kind == "store":
            tensor, start = copy.tensor, copy.start
            counts = self.stores.setdefault(id(tensor), [tensor, start, 0, 0])
            counts[2 if tensor.misses(start) else 3] += 1

    def finish(self, cluster) -> None:
        for tmap, start, outside, inside in self.stores.values():
            if inside or not outside:
                continue
            at = f"column {start[0]}, row {start[1]}" if tmap.rank == 2 else str(tuple(start))
            message = (
                f"all TMA stores of CTA {cluster.cta_ids[0]} lie outside of {tmap.name or 'a tensor'}, from "
                f"{at} on (innermost first {tmap.dims}): nothing is written, its work is for nothing"
            )
            key = ("outside", tmap.name)
            finding = self.reporter.add("out-of-bounds", "review", message, CAUSES["useless-stores"], key=key)
            finding.count += outside - 1
            finding.evidence["cost"] = finding.count * tmap.box_bytes  # bytes that are dropped
