"""What happened at each CTA barrier of a cluster: which warps came, from which rows, with which counts."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxsim.events.observer import Observer, observer_of
from ptxsim.events.records import BarArrival
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.report.findings import Reporter


@dataclass
class CtaBarrier:
    open: list[tuple[int, int | None]] = field(default_factory=list)  # (row, threads) in this phase
    warps: dict[int, set[int]] = field(default_factory=dict)  # row -> warps that ever came there
    counts: dict[int | None, int] = field(default_factory=dict)  # threads expected -> a row
    mixed: tuple[int, ...] = ()  # two rows that met in one phase
    clash: bool = False  # two counts met in one phase
    # Warp -> whether it waits (True), or only arrives.
    how: dict[int, set[bool]] = field(default_factory=dict)

    @property
    def waited(self) -> bool:
        """Whether any thread has ever waited here."""
        return any(True in how for how in self.how.values())

    def ways(self, warp: int) -> set[bool]:
        """Whether a warp waits here (True), or arrives without waiting; empty if it never came."""
        return self.how.get(warp, set())

    def rows(self, warp: int) -> list[int]:
        """The rows at which a warp has come here."""
        return sorted(row for row, warps in self.warps.items() if warp in warps)


class CtaBarriers(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        pass

    def start(self, cluster: Cluster) -> None:
        self.barriers: dict[tuple[int, int], CtaBarrier] = {}  # (CTA, number)

    def bar_arrive(self, cluster: Cluster, split: Split, arrival: BarArrival) -> None:
        barrier = self.barriers.setdefault((split.cta, arrival.number), CtaBarrier())
        expected, whole = arrival.threads, 32 * cluster.warps_per_cta
        barrier.counts.setdefault(expected, split.row)
        barrier.warps.setdefault(split.row, set()).add(split.warp)
        barrier.how.setdefault(split.warp, set()).add(arrival.waits)
        for row, threads in barrier.open:
            barrier.clash |= (threads or whole) != (expected or whole)
            if row != split.row and not barrier.mixed:
                barrier.mixed = row, split.row
        barrier.open.append((split.row, expected))

    def bar_complete(self, cluster: Cluster, cta: int, number: int, waiting: list) -> None:
        barrier = self.barriers.get((cta, number))
        if barrier is not None:
            barrier.open.clear()


def cta_barriers(cluster: Cluster) -> dict[tuple[int, int], CtaBarrier]:
    """(CTA, number) -> its barrier; empty when the cluster runs without checks."""
    known = observer_of(cluster.bus, CtaBarriers)
    return known.barriers if known is not None else {}
