"""Clusters whose TMA stores all lie outside the tensor: their work is wasted (PTX ISA 9.7.9.27.1.2).

A cluster that stores part of its tile inside is at the tensor's edge, which is correct. Only its stores that
lie far outside are noted, until the launch knows whether the output is complete (unwritten_outputs.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.observer import Observer
from ptxsim.events.records import BulkCopy
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.report.findings import Reporter

_KEPT = 16  # stores of a CTA whose starts are kept


@dataclass
class Stores:
    """The TMA stores of a cluster to one array."""

    inside: int = 0
    outside: int = 0
    first: tuple[BulkCopy, Split] | None = None  # the first store outside, and where it was issued
    far: tuple[BulkCopy, Split] | None = None  # the first one a box or more outside
    starts: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)  # rank of the CTA -> first starts


class UselessStores(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter

    def start(self, cluster: Cluster) -> None:
        self.stores: dict[int, Stores] = {}  # segment of an array -> its stores

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> None:
        if copy.kind != "store":
            return
        tensor = copy.tensor
        stores = self.stores.setdefault(tensor.segment, Stores())
        starts = stores.starts.setdefault(split.cta, [])
        if len(starts) < _KEPT:
            starts.append(tuple(copy.start))
        if not tensor.misses(copy.start):
            stores.inside += 1
            return
        stores.first = stores.first or (copy, split.at())
        stores.outside += 1
        if stores.far is None and _is_far(copy):
            stores.far = copy, split.at()

    def finish(self, cluster: Cluster) -> None:
        for stores in self.stores.values():
            shown = stores.far if stores.inside else stores.first
            if shown is None:
                continue
            copy, where = shown
            tensor = copy.tensor
            at = "column {}, row {}".format(*copy.start) if tensor.rank == 2 else str(tuple(copy.start))
            name, cause = tensor.name or "a tensor", CAUSES["useless-stores"]
            if stores.inside:
                message, key = f"TMA stores lie outside of {name}, from {at} on", ("edge", name)
                found = self.reporter.add(
                    "out-of-bounds", "review", message, cause, where, key, edge=stores.outside
                )
                found.evidence["diagonal"] = _diagonal(stores, where.cta)
                continue
            message = (
                f"all TMA stores of CTA {cluster.cta_ids[where.cta]} lie outside of {name}, from {at} on "
                f"(innermost first {tensor.dims}): nothing is written, so its work is wasted"
            )
            key = ("outside", tensor.name)
            finding = self.reporter.add("out-of-bounds", "review", message, cause, key=key, tensor=name)
            finding.count += stores.outside - 1
            finding.evidence["cost"] = finding.count * tensor.box_bytes  # bytes that are dropped


def _is_far(copy: BulkCopy) -> bool:
    """Whether a copy starts a box or more past the end of the tensor, or as far in front of it."""
    tensor = copy.tensor
    axes = zip(copy.start, tensor.dims, tensor.box, strict=True)
    return any(not -box < at < extent + box for at, extent, box in axes)


def _diagonal(stores: Stores, rank: int) -> str:
    """`CTA 1 stores 128 columns and 128 rows past CTA 0, each time`: along both axes; "" if it does not."""
    mine, theirs = stores.starts.get(rank, []), stores.starts.get(0, [])
    pairs = zip(mine, theirs, strict=False) if len(mine) == len(theirs) else ()
    apart = {tuple(a - b for a, b in zip(one, other, strict=True)) for one, other in pairs}
    if not rank or len(apart) != 1:
        return ""
    distance = apart.pop()
    if len(distance) != 2 or not all(distance):
        return ""
    return f"CTA {rank} stores {distance[0]} columns and {distance[1]} rows past CTA 0, each time"
