"""Clusters whose TMA stores all lie outside the tensor: their work is wasted (PTX ISA 9.7.9.27.1.2). So is a
computation on loads that all lie outside along one axis, after others that lay inside: they bring zeros.

A cluster that stores part of its tile inside is at the tensor's edge, which is right. Loads of a tile that
lies outside because the cluster is larger than what is left are right too.
"""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.observer import Observer
from ptxsim.events.records import BulkCopy, Place
from ptxsim.events.views import Cluster, Launch, Split

Load = tuple[BulkCopy, Split]  # and where it was issued


class UselessStores(Observer):
    def __init__(self, launch: Launch, reporter):
        self.reporter = reporter

    def start(self, cluster: Cluster) -> None:
        self.stores: dict[int, list] = {}  # of an array -> [a map, first outside, CTA, boxes outside, inside]
        self.loads: dict[Place, list[Load]] = {}  # that report to a barrier, since its last phase
        self.empty: dict[str, list[Load]] = {}  # array of barriers -> those of phases that bring only zeros
        self.apart: dict[
            str, tuple[int, int]
        ] = {}  # how far the first of those is from the one before, its box
        self.phases = 0  # of those
        self.inside: dict[tuple[int, int], list[Load]] = {}  # map, CTA -> those of its last phase inside

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> None:
        if copy.kind == "store":
            self._stores(split.cta, copy)
        for place in copy.barriers:
            self.loads.setdefault(place, []).append((copy, split.at()))

    def phase_complete(self, cluster: Cluster, place) -> None:
        loads = self.loads.pop(place, ())
        if not loads:
            return
        kind = id(loads[0][0].tensor), place[0]
        if not all(copy.tensor.array.size and copy.tensor.misses(copy.start) for copy, _ in loads):
            self.inside[kind] = loads
        elif _go_on(loads, self.inside.get(kind, [])):
            array = self.reporter.shared_array(place[1])
            self.apart.setdefault(array, _apart(self.inside[kind][0][0], loads[0][0]))
            self.empty.setdefault(array, []).extend(loads)
            self.phases += 1

    def _stores(self, cta: int, copy: BulkCopy) -> None:
        tensor, start = copy.tensor, copy.start
        counts = self.stores.setdefault(tensor.segment, [tensor, start, cta, 0, 0])
        counts[3 if tensor.misses(start) else 4] += 1

    def finish(self, cluster: Cluster) -> None:
        for array, loads in self.empty.items():
            copy, where = loads[0]
            names = " and ".join(sorted({load.tensor.name or "a tensor" for load, _ in loads}))
            message = (
                f"{self.phases} phase{'s' * (self.phases > 1)} of {array} bring nothing but zeros: all TMA "
                f"loads lie outside of {names}, from {tuple(copy.start)} on (innermost first "
                f"{copy.tensor.dims}): what is computed from them is for nothing"
            )
            step, width = self.apart[array]
            message += f"; one starts {step} behind the other, and is {width} wide" if step > width else ""
            cause = CAUSES["gaps" if step > width else "useless-loads"]
            cost = sum(load.size for load, _ in loads)
            self.reporter.add("out-of-bounds", "review", message, cause, where, ("zeros", array), cost=cost)
        for tmap, start, cta, outside, inside in self.stores.values():
            if inside or not outside:
                continue
            at = f"column {start[0]}, row {start[1]}" if tmap.rank == 2 else str(tuple(start))
            message = (
                f"all TMA stores of CTA {cluster.cta_ids[cta]} lie outside of {tmap.name or 'a tensor'}, "
                f"from {at} on (innermost first {tmap.dims}): nothing is written, its work is for nothing"
            )
            key = ("outside", tmap.name)
            finding = self.reporter.add("out-of-bounds", "review", message, CAUSES["useless-stores"], key=key)
            finding.count += outside - 1
            finding.evidence["cost"] = finding.count * tmap.box_bytes  # bytes that are dropped


def _go_on(loads: list[Load], before: list[Load]) -> bool:
    """Do all loads leave their tensors at the same point of one axis, along which others came before?"""
    ends = set()
    for copy, where in loads:
        start, dims = copy.start, copy.tensor.dims
        axes = [axis for axis in range(len(dims)) if not 0 <= start[axis] < dims[axis]]
        same = [one for one, at in before if one.tensor is copy.tensor and at.cta == where.cta]
        if len(axes) != 1 or not any(_along(one.start, start) == axes for one in same):
            return False
        ends.add((start[axes[0]], dims[axes[0]]))
    return len(ends) == 1


def _apart(before: BulkCopy, copy: BulkCopy) -> tuple[int, int]:
    """(distance of two starts, extent of the box) along the first axis in which they differ."""
    axes = _along(before.start, copy.start) or [0]
    return copy.start[axes[0]] - before.start[axes[0]], copy.tensor.box[axes[0]]


def _along(one: tuple[int, ...], other: tuple[int, ...]) -> list[int]:
    """The axes along which two starts differ."""
    return [axis for axis, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
