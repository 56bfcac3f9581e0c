"""Which requests find their bytes in L2, and what share of the chip's bandwidth a request takes.

The sampled cluster says how much it reads of each array. The first requests of the clusters that run at
the same time say how many of them read the same part of it (`sharers`). The rule for what follows:

* A benchmark launches again and again. If all arrays fit into L2 together, every request hits.
* Otherwise the clusters of one wave walk through their parts in step. The first to touch a line waits for
HBM, and the others with it. A line that an earlier wave has read is still there if a wave's lines fit into
L2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ptxsim.timing.chip import Chip


@dataclass
class Locality:
    """Of one launch on one chip."""

    chip: Chip
    sms: int  # that work
    miss: dict[int, float] = field(default_factory=dict)  # array -> share of the requests that wait for HBM
    sharers: dict[int, float] = field(
        default_factory=dict
    )  # array -> clusters that read the same line at a time

    def l2_seconds(self, segment: int) -> float:
        """Time of all of L2 that a byte takes: shared lines are cheaper than distinct ones."""
        alone = 1.0 / max(1.0, self.sharers.get(segment, 1.0))
        return alone / self.chip.l2_rate + (1.0 - alone) / self.chip.l2_shared_rate

    def hbm_seconds(self, segment: int) -> float:
        return 1.0 / max(1.0, self.sharers.get(segment, 1.0)) / self.chip.hbm_rate


def locality(chip: Chip, sms: int, reads: dict[int, int], sizes: dict[int, int], sharers: dict[int, float],
             clusters: int, together: int) -> Locality:  # fmt: skip
    """reads: bytes that a cluster reads of each array; sizes: of every array that the kernel touches.

    clusters: of the grid; together: that run at the same time.
    """
    found = Locality(chip, sms, {}, dict(sharers))
    if chip.warm and sum(sizes.values()) <= chip.l2_bytes:
        found.miss = dict.fromkeys(reads, 0.0)
        return found
    waves = max(1, math.ceil(clusters / together))
    unique = {
        s: min(sizes[s], size * min(clusters, together) / sharers.get(s, 1.0)) for s, size in reads.items()
    }
    stays = sum(unique.values()) <= chip.l2_bytes
    for segment, size in unique.items():
        found.miss[segment] = min(1.0, sizes[segment] / (waves * size)) if stays and size else 1.0
    return found
