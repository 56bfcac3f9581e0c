"""Checks that every use of an mbarrier comes after its mbarrier.init (PTX ISA 9.7.13.4, 9.7.13.15.9)."""

from __future__ import annotations

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.phrases import source_line
from ptxsim.checks.race.part import Part
from ptxsim.checks.race.wording import line_text
from ptxsim.events.records import Arrival, Fence, PhaseWait
from ptxsim.events.views import Cluster, Split
from ptxsim.report.findings import Finding


class BarrierInit(Part):
    """Part of the RaceDetector. Comes before Synchronization: a use is checked against what was known
    before it.
    """

    def start(self, cluster: Cluster) -> None:
        self.ordered: dict[tuple, int] = {}  # (place, warp) -> lanes that come after the barrier's init
        self.unfenced: dict[tuple, int] = {}  # barriers -> agent of an init that no fence has followed yet
        # barriers that no hardware unit has used and their thread has not fenced -> threads that have fenced
        self.bare: dict[tuple, set[int]] = {}
        # (name, relaxed) -> finding: barriers used before their init is visible
        self.early: dict[tuple[str, bool], Finding] = {}

    def mbarrier_init(self, cluster: Cluster, split: Split, lane: int, place) -> None:
        self.ordered = {key: lanes for key, lanes in self.ordered.items() if key[0] != place}
        self.unfenced[place] = self.clocks.agent_of(split.warp * 32 + lane)
        self.bare[place] = set()
        self._came_late(cluster, split, place)

    def _came_late(self, cluster: Cluster, split: Split, place) -> None:
        """Rewords a finding that nobody has initialised this barrier: its init has come, after the use, by
        another warp.
        """
        reporter = self.races.reporter
        found = reporter.by_identity.get(("mbarrier", ("uninit", place[1])))
        if found is None or found.evidence["barrier_cta"] != place[0]:
            return
        warp = split.cta, split.warp % cluster.warps_per_cta
        if found.where["cta"] in cluster.cta_ids and (found.where["rank"], found.where["warp"]) != warp:
            use = f"{found.evidence['action']} on {found.evidence['barrier']} of CTA {place[0]}"
            text = f"{use} before its mbarrier.init ({source_line(cluster.program, split.row)})"
            reporter.blame(found, CAUSES["init-order"], f"{text}: nothing makes it wait for that")

    def mbarrier_arrive(self, cluster: Cluster, split: Split, arrival: Arrival) -> None:
        self.used(split, arrival.lanes, arrival.place, "arrive")

    def mbarrier_wait(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        self.used(split, wait.lanes, wait.place, "wait")

    def fence(self, cluster: Cluster, split: Split, fence: Fence) -> None:
        """fence.mbarrier_init: whatever its thread synchronises after it, even relaxed, publishes the
        thread's inits.
        """
        if self.bare and self.races.cluster.ctas == 1 and fence.shared_proxy:
            self._crossed(split)
        if not fence.inits:
            return
        clocks, agents = self.clocks, set(self.clocks.agents(split).tolist() if self.unfenced else ())
        for place, agent in list(self.unfenced.items()):
            if agent in agents:
                column = clocks.column("init", agent)
                queue = clocks.queue(column)
                queue.count += 1
                clocks.signals[place].init_fence = column, queue.count
                clocks.thread_clock[agent, column - clocks.threads] = queue.count
                del self.unfenced[place]
                self.bare.pop(place, None)

    def _crossed(self, split: Split) -> None:
        """Records fence.proxy.async in a cluster of one CTA by threads that come after an init."""
        agents = self.clocks.agents(split)
        for place in list(self.bare):
            by = self.clocks.signals[place].initialised
            assert by is not None  # by whom: an init put the barrier here
            agent, epoch = by
            if agent in agents:
                del self.bare[place]
            else:
                self.bare[place].update(agents[self.clocks.clock[agents, agent] >= epoch].tolist())

    def used(self, split: Split, lanes: int, place, what: str) -> None:
        """Checks lanes that use a barrier, or that have a copy or commit use it."""
        if place in self.bare and what not in ("arrive", "wait"):
            self._needs_fence(split, place, what)
        ordered = self.ordered.get((place, split.warp), 0)
        signal = self.clocks.signals.get(place)
        if not lanes & ~ordered or signal is None or signal.initialised is None:
            return
        self.ordered[place, split.warp] = ordered | lanes
        agents = self.clocks.agents_of(split.warp, lanes & ~ordered)
        agent, epoch = signal.initialised
        early = (self.clocks.clock[agents, agent] < epoch) & (agents != agent)
        if signal.init_fence is not None:
            column, at = signal.init_fence
            early &= self.clocks.thread_clock[agents, column - self.clocks.threads] < at
        relaxed = self.races.handshakes.met_relaxed(agent, epoch, split.warp) if early.any() else None
        for _ in range(np.count_nonzero(early)):
            self._used_early(split, place, what, relaxed)

    def _needs_fence(self, split: Split, place, what: str) -> None:
        """Checks a hardware unit's use of a barrier whose init must have been fenced (9.7.13.4). Within one
        CTA either fence suffices, and the proxy fence may be that of the thread that initialises or of the
        one that issues.

        Only a review: without a fence every chip behaves correctly within one CTA whose threads synchronise
        (Triton leaves out both fences).
        """
        if self.clocks.agent_of(split.warp * 32 + split.leader) in self.bare.pop(place):
            return
        name = self.races.reporter.shared_name(place[1])
        fence = "fence.mbarrier_init"
        if self.races.cluster.ctas == 1:
            message = (
                f"{name} is used by a unit of the chip ({what}), and neither {fence} nor fence.proxy.async "
            )
            message += "has followed its mbarrier.init"
        else:
            message = (
                f"{name} of CTA {place[0]} is used by a unit of the chip ({what}) in a cluster, and the "
            )
            message += f"thread of its init has run no {fence} since"
        key = ("init-fence", name.partition("[")[0])
        self.races.reporter.add("mbarrier", "review", message, CAUSES["init-fence"], split, key, barrier=name)

    def _used_early(self, split: Split, place, what: str, relaxed: int | None) -> None:
        """Reports a use before the init: one finding for all barriers of a name. relaxed: row of a relaxed
        arrival at the cluster's barrier between the two. Then the init has been executed, and only the text
        does not promise that it is seen: CUTLASS's GEMMs for pairs of CTAs free tensor memory so on B200s.
        """
        name = self.races.reporter.shared_name(place[1])
        key = name.partition("[")[0], relaxed is not None
        if key in self.early:
            self.early[key].count += 1
            return
        text = f"{name} of CTA {place[0]} is used ({what}) while nothing orders this after its mbarrier.init"
        if relaxed is not None:
            line = line_text(self.races, relaxed)
            text += (
                f": the barrier of the cluster between the two hands on no memory, as its arrival{line} is "
            )
            text += ".relaxed, and the thread of the init has run no fence.mbarrier_init before it"
        cause = CAUSES["init-order" if relaxed is None else "init-fence"]
        severity = "error" if relaxed is None else "review"
        self.early[key] = self.races.reporter.add(
            "mbarrier", severity, text, cause, split, key=("init-order", place[1], key[1]), barrier=name
        )
