"""One instance of a script while it is replayed, and what a later look at it needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxsim.timing.locality import Locality
from ptxsim.timing.script import Script

SUBS = 4  # sub-partitions of an SM


@dataclass
class Path:
    """What a later look at the critical path needs, of one instance."""

    issued: dict[int, tuple[int, float]] = field(default_factory=dict)  # event -> (warp, cycle of its issue)
    served: dict[int, tuple[float, float, float]] = field(
        default_factory=dict
    )  # begin, served, end of unit work
    waits: list[list] = field(default_factory=list)  # of every warp: (begin, end, kind, event or -1)
    ended: dict[int, float] = field(default_factory=dict)  # event -> cycle
    cause: dict[int, int] = field(default_factory=dict)  # phase -> the last that it followed
    last: tuple = (0, 0.0)  # warp that ended last


class Instance:
    """The state of one instance of the script."""

    def __init__(self, script: Script, locality: Locality, index: int):
        count, self.warps = len(script.warps), script.tape.warps_per_cta
        self.first = index * self.warps  # warps of the next CTA go on where those of the last one ended
        self.place = [0] * count
        self.ready: list[dict[str, float]] = [{} for _ in range(count)]
        self.tmem = [0.0] * count
        self.products = [0.0] * count  # when each warp's last mma.sync begins
        self.passed = [0.0] * count  # when the lines that each warp loads have passed
        self.ended: list[float | None] = [None] * len(script.tape.events)
        self.missing = list(script.follows)
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
        """When the lines that a warp asks for at `at` have passed, behind those that it asked for before."""
        self.passed[warp] = max(self.passed[warp], at) + cycles
        return self.passed[warp]

    def issued(self, warp: int, at: float) -> float:
        """When the warp's mma.sync have all been issued: none stays behind at the end of a basic block, or at
        a barrier.
        """
        until = self.products[warp]
        if until > at:
            self.path.waits[warp].append((at, until, "tensor core", -1))
        return max(at, until)

    def misses(self, segment: int, what, part: float = 1.0) -> bool:
        """Whether the next request for an array goes to HBM: as many as the array's share says, evenly.

        part: of each line that the request asks for; the rest comes to L2 with it and is found there later.
        """
        return self._nth(("miss", segment, what), self.locality.waits(segment) * part)

    def finds(self, cache: str, segment: int, share: float) -> bool:
        """Whether a cache still has what a CTA reads again: `share` of the requests, evenly."""
        return share >= 1.0 or self._nth((cache, segment), share)

    def _nth(self, key: tuple, share: float) -> bool:
        """True for `share` of the calls with the same key, evenly."""
        before = self.shares.get(key, 0.0)
        self.shares[key] = before + share
        return int(before + share + 1e-9) > int(before + 1e-9)
