"""TMA loads that lie outside of their tensors while a computation goes on: they bring zeros (PTX ISA
9.7.9.27.1.2), and the computation on them is wasted.

Loads of a tile that lies outside because the cluster is larger than the rest of the tensor are correct. So
are those of a tile at the output's edge. Reported are loads past the end of an axis along which earlier loads
advanced, and loads that leave two tensors at one point of their innermost axis: that axis is K, whatever the
tile.
"""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.observer import Observer
from ptxsim.events.records import BulkCopy, Place
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.report.findings import Reporter

Load = tuple[BulkCopy, Split]  # a copy, and where it was issued


class UselessLoads(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter

    def start(self, cluster: Cluster) -> None:
        self.loads: dict[Place, list[Load]] = {}  # barrier -> loads that report to it, since its last phase
        self.empty: dict[str, list[list[Load]]] = {}  # array of barriers -> loads of zeros, by phases
        self.apart: dict[str, tuple[int, int]] = {}  # how far the first starts from the one before; its box
        self.whole: dict[str, bool] = {}  # whether its first such phase brought nothing else
        self.inside: dict[tuple[int, int], list[Load]] = {}  # (map, CTA) -> the latest loads inside

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> None:
        for place in copy.barriers:
            self.loads.setdefault(place, []).append((copy, split.at()))

    def phase_complete(self, cluster: Cluster, place: Place) -> None:
        loads = self.loads.pop(place, [])
        if not loads:
            return
        kind = id(loads[0][0].tensor), place[0]
        outside: list[Load] = []
        inside: list[Load] = []
        for load in loads:
            (outside if _misses(load) else inside).append(load)
        if inside:
            self.inside[kind] = inside
            outside = _of_ctas_without(outside, inside)
        whole, before = not inside, self.inside.get(kind, [])
        if outside and (whole and before and _go_on(outside, before) or _past_the_end(outside)):
            array = self.reporter.shared_array(place[1])
            self.apart.setdefault(array, _apart(before[0][0], outside[0][0]) if before else (0, 0))
            self.whole.setdefault(array, whole)
            self.empty.setdefault(array, []).append(outside)

    def finish(self, cluster: Cluster) -> None:
        for array, phases in self.empty.items():
            (copy, where), loads = phases[0][0], [load for found in phases for load in found]
            names = " and ".join(sorted({load.tensor.name or "a tensor" for load, _ in loads}))
            message = (
                f"{self._in_phases(array, len(phases), where.cta)} nothing but zeros: all TMA loads lie "
                f"outside of {names}, from {tuple(copy.start)} on (innermost first {copy.tensor.dims}): what "
                f"is computed from them is for nothing"
            )
            step, width = self.apart[array]
            message += f"; one starts {step} after the other, and is {width} wide" if step > width else ""
            cause = CAUSES["gaps" if step > width else "useless-loads"]
            cost = sum(load.size for load, _ in loads)
            self.reporter.add("out-of-bounds", "review", message, cause, where, ("zeros", array), cost=cost)

    def _in_phases(self, array: str, phases: int, rank: int) -> str:
        """`1 phase of full brings`, `CTA 1's part of 2 phases of full brings`."""
        of = f"{phases} phase{'s' * (phases > 1)} of {array}"
        if not self.whole[array]:
            return f"CTA {rank}'s part of {of} brings"
        return f"{of} bring{'s' * (phases == 1)}"


def _misses(load: Load) -> bool:
    copy, _ = load
    return bool(copy.tensor.array.size) and copy.tensor.misses(copy.start)


def _of_ctas_without(outside: list[Load], inside: list[Load]) -> list[Load]:
    """The loads of the one CTA that has none inside; none if there are several such CTAs."""
    ranks = {at.cta for _, at in outside} - {at.cta for _, at in inside}
    return [load for load in outside if load[1].cta in ranks] if len(ranks) == 1 else []


def _go_on(loads: list[Load], before: list[Load]) -> bool:
    """Whether all loads leave their tensors at the same point of one axis, along which earlier loads
    advanced.
    """
    ends = set()
    for copy, where in loads:
        axes = _leaves_along(copy)
        same = [one for one, at in before if one.tensor is copy.tensor and at.cta == where.cta]
        if len(axes) != 1 or not any(_along(one.start, copy.start) == axes for one in same):
            return False
        ends.add((copy.start[axes[0]], copy.tensor.dims[axes[0]]))
    return len(ends) == 1


def _past_the_end(loads: list[Load]) -> bool:
    """Whether loads of two tensors leave both at one point of their innermost axis."""
    ends = {(copy.start[0], copy.tensor.dims[0]) for copy, _ in loads}
    innermost = all(_leaves_along(copy) == [0] for copy, _ in loads)
    return innermost and len(ends) == 1 and len({id(copy.tensor) for copy, _ in loads}) > 1


def _leaves_along(copy: BulkCopy) -> list[int]:
    """The axes along which a copy starts outside of its tensor."""
    ends = enumerate(zip(copy.start, copy.tensor.dims, strict=True))
    return [axis for axis, (at, extent) in ends if not 0 <= at < extent]


def _apart(before: BulkCopy, copy: BulkCopy) -> tuple[int, int]:
    """(distance of two starts, extent of the box) along the first axis in which they differ."""
    axes = _along(before.start, copy.start) or [0]
    return copy.start[axes[0]] - before.start[axes[0]], copy.tensor.box[axes[0]]


def _along(one: tuple[int, ...], other: tuple[int, ...]) -> list[int]:
    """The axes along which two starts differ."""
    return [axis for axis, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
