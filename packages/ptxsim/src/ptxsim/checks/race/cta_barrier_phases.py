"""CTA barriers whose phases depend on timing: bar.arrive does not wait, so a warp may arrive for two phases
in a row.

Consider a warp that waits. Every arrival that does not come after its own may come before it (PTX ISA
9.7.13.1). If these and its own do not fill whole phases, this warp may be the one left over, and hangs. Only
kernels with bar.arrive can do so.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.cta_barriers import cta_barriers
from ptxsim.checks.race.clock_rows import rows_of
from ptxsim.checks.race.part import Part
from ptxsim.checks.race.short_records import ends_in_every_order
from ptxsim.events.records import BarArrival
from ptxsim.events.views import Cluster, Split
from ptxsim.lowering.emit import Program
from ptxsim.report.findings import Finding
from ptxsim.units.barriers import barrier_of_cta

BARRIERS = 16  # CTA barriers of a CTA (9.7.13.1)
_SETTLED = 2  # after so many phases whose every arrival comes after a wait, later arrivals do too


@dataclass
class Waiting:
    """A waiting arrival, and how many arrivals may come before it (itself included)."""

    agent: int
    epoch: int
    place: dict  # in the source
    arrivals: int
    behind: int = 0  # phases in a row whose every arrival comes after it


@functools.lru_cache(maxsize=16)
def _arrives_without_a_wait(program: Program) -> bool:
    """Whether there is a bar.arrive. barrier.cluster.arrive belongs to another barrier."""
    used = (i.mods for i in program.by_row.values() if i.op in ("bar", "barrier"))
    return any("arrive" in mods and "cluster" not in mods for mods in used)


class CtaBarrierPhases(Part):
    """Part of the RaceDetector, before Synchronization: it needs the clocks that an arrival releases."""

    def start(self, cluster: Cluster) -> None:
        self.arrived: dict[tuple, int] = {}  # (CTA, number) -> arrivals of warps so far
        self.open: dict[tuple, list[Waiting]] = {}  # (CTA, number) -> waits not judged yet
        self.left: dict[tuple, tuple[Waiting, int]] = {}  # (CTA, number) -> the first wait left over, count
        self.looks = _arrives_without_a_wait(cluster.program)

    def bar_arrive(self, cluster: Cluster, split: Split, arrival: BarArrival) -> None:
        if not self.looks or self.clocks.threads_per_agent > 1:
            return
        key, agents = (split.cta, arrival.number), self.clocks.agents(split)
        self.arrived[key] = self.arrived.get(key, 0) + 1
        for waiting in self.open.get(key, ()):
            if (self.clocks.clock[rows_of(agents), waiting.agent] < waiting.epoch).any():
                waiting.arrivals += 1
                waiting.behind = -1
        if arrival.waits:
            agent = int(agents[0])
            epoch = int(self.clocks.clock[agent, agent])
            waiting = Waiting(agent, epoch, self.races.reporter.place(split), self.arrived[key])
            self.open.setdefault(key, []).append(waiting)

    def bar_complete(self, cluster: Cluster, cta: int, number: int, waiting: list) -> None:
        for one in list(self.open.get((cta, number), ())):
            one.behind += 1
            if one.behind > _SETTLED:
                self.open[cta, number].remove(one)
                self._judge(cluster, (cta, number), one)

    def finish(self, cluster: Cluster) -> None:
        if cluster.stuck:
            return
        lucky = self._by_luck()
        for key, several in self.open.items():
            left = key[1] in lucky and barrier_of_cta(cluster, *key).arrived > 0
            for one in several:
                self._judge(cluster, key, one, left)
        ends = ends_in_every_order(cluster, self.races.record) if self.left or lucky else True
        for key, (one, count) in self.left.items() if not ends else ():
            self._report(key, one, count)
        for finding in lucky.values() if ends is False else ():
            finding.severity = "error"
            finding.message += ", and in another order a warp is left over, and hangs"

    def _by_luck(self) -> dict[int, Finding]:
        """Number of a CTA barrier -> the review that says that its phases depend on timing."""
        found = self.races.reporter.by_identity
        keys = {number: ("collective", ("luck", number)) for number in range(BARRIERS)}
        return {number: found[key] for number, key in keys.items() if key in found}

    def _judge(self, cluster: Cluster, key: tuple, one: Waiting, left: bool = False) -> None:
        """Keeps a wait that may be left over. left: some arrival is left over, and timing decides which."""
        counts = cta_barriers(cluster)[key].counts
        count = next(iter(counts))
        if len(counts) > 1 or count is None or count % 32:
            return
        if not left and one.arrivals * 32 % count == 0:
            return
        self.left.setdefault(key, (one, count))

    def _report(self, key: tuple, one: Waiting, count: int) -> None:
        message = (
            f"CTA barrier {key[1]}: the warps that may arrive before this wait, or with it, do not fill "
            f"whole phases of {count // 32} warps: in another order, this wait is left over and hangs"
        )
        finding = self.races.reporter.add(
            "collective", "error", message, CAUSES["left-over"], None, ("left", key[1])
        )
        finding.where = finding.where or one.place
