"""Copies whose bytes may arrive in an earlier phase of their mbarrier than the one that announces them.

The thread that issues a copy must know that all earlier phases with bytes are over. Otherwise its bytes may
arrive in such a phase, besides those announced for it, and timing decides which copy ends the phase. Two
copies may also complete at the same time: an H200 then subtracts both from the tx-count at once, which passes
zero, and the phase never ends (PTX ISA 9.7.13.15.5: a phase ends when its tx-count is zero).
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.race.part import Part
from ptxsim.events.records import BulkCopy, Place
from ptxsim.events.views import Cluster, Split


@dataclass(frozen=True)
class UnderWay:
    """An issued copy whose bytes have not arrived."""

    known: dict[Place, int]  # phases of its mbarriers that its warp knew to be over
    where: Split


class EarlyCopies(Part):
    """Part of the RaceDetector, after Synchronization."""

    def start(self, cluster: Cluster) -> None:
        self.with_bytes: dict[Place, int] = {}  # phases up to the last one that got bytes from copies
        self.early: dict[Place, tuple[UnderWay, int]] = {}  # the first early copy of a barrier, and its phase

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> UnderWay | None:
        clocks = self.races.clocks
        if not copy.barriers:
            return None
        warp, known = clocks.rows_of_warp(split.warp), {}
        for place in copy.barriers:
            column = clocks.thread_column("bytes", place)
            known[place] = int(clocks.thread_clock[warp, column].max())
        return UnderWay(known, split.at())

    def async_arrive(self, cluster: Cluster, place: Place, token: UnderWay | None) -> None:
        if token is None or place not in cluster.mbarriers:
            return
        phase = cluster.mbarriers[place].phase
        if token.known[place] < self.with_bytes.get(place, 0) <= phase:
            self.early.setdefault(place, (token, phase))
        self.with_bytes[place] = phase + 1

    def finish(self, cluster: Cluster) -> None:
        reporter = self.races.reporter
        if reporter.verdict() == "error":
            return  # copies that run ahead may follow from other errors
        for place, (issue, phase) in self.early.items():
            name = reporter.shared_name(place[1])
            message = (
                f"{name}: the bytes of this copy arrived in phase {phase}, but nothing orders it after phase "
                f"{issue.known[place]}, which has bytes of its own: this copy's may arrive there, too, and "
                f"that phase then never ends (an H200 subtracts two simultaneous copies in one step)"
            )
            key = ("early-copy", name.partition("[")[0])
            reporter.add("tx-count", "error", message, CAUSES["early-copy"], issue.where, key, barrier=name)
