"""One instance of a cluster while it is replayed, and the record from which its critical path is found."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxsim.timing.costed_execution import CostedExecution
from ptxsim.timing.locality import Locality

SUBS = 4  # sub-partitions of an SM


@dataclass
class Path:
    """The times of one instance from which its critical path is found (critical.py)."""

    issued: dict[int, tuple[int, float]] = field(default_factory=dict)  # event -> (warp, cycle of its issue)
    served: dict[int, tuple[float, float, float]] = field(
        default_factory=dict
    )  # begin, served, end of unit work
    waits: list[list] = field(default_factory=list)  # of every warp: (begin, end, kind, event or -1)
    ended: dict[int, float] = field(default_factory=dict)  # event -> cycle
    cause: dict[int, int] = field(default_factory=dict)  # phase -> the last event that it waited for
    last: tuple = (0, 0.0)  # (warp that ended last, cycle)


class Instance:
    """The state of one instance of the cluster."""

    def __init__(self, costed: CostedExecution, locality: Locality, index: int):
        count, self.warps = len(costed.warps), costed.execution.warps_per_cta
        self.first = index * self.warps  # the warps of a CTA continue the numbering of the CTA before
        self.place = [0] * count
        self.ready: list[dict[str, float]] = [{} for _ in range(count)]
        self.tmem = [0.0] * count
        self.products = [0.0] * count  # when each warp's last mma.sync begins
        self.passed = [0.0] * count  # when the lines that each warp has requested have arrived
        self.ended: list[float | None] = [None] * len(costed.execution.events)
        self.missing = list(costed.follows)
        self.phase_end: dict[int, float] = {}
        self.sleepers: dict[int, list] = {}
        self.alive, self.end, self.stored = count, 0.0, 0.0
        self.path = Path(waits=[[] for _ in range(count)])
        self.locality = locality
        self.shares: dict = {}

    def sub(self, warp: int) -> int:
        """The sub-partition of its SM that a warp runs on."""
        return (self.first + warp % self.warps) % SUBS

    def paced(self, warp: int, at: float, cycles: float) -> float:
        """When the lines that a warp requests at `at` have arrived; they queue after its earlier requests."""
        self.passed[warp] = max(self.passed[warp], at) + cycles
        return self.passed[warp]

    def issued(self, warp: int, at: float) -> float:
        """When all mma.sync of the warp have been issued: the end of a basic block and a barrier wait for
        them.
        """
        until = self.products[warp]
        if until > at:
            self.path.waits[warp].append((at, until, "tensor core", -1))
        return max(at, until)

    def misses(self, segment: int, what, part: float = 1.0) -> bool:
        """Whether the next request for an array goes to HBM; true for the array's share of requests, evenly.

        part: share of each line that is requested; the rest reaches L2 with it and is found there later.
        """
        return self._nth(("miss", segment, what), self.locality.waits(segment) * part)

    def finds(self, cache: str, segment: int, share: float) -> bool:
        """Whether a cache still holds what a CTA reads again; true for `share` of the requests, evenly."""
        return share >= 1.0 or self._nth((cache, segment), share)

    def _nth(self, key: tuple, share: float) -> bool:
        """True for `share` of the calls with the same key, evenly distributed."""
        before = self.shares.get(key, 0.0)
        self.shares[key] = before + share
        return int(before + share + 1e-9) > int(before + 1e-9)
