"""Which requests find their bytes in L2, and what share of the chip's bandwidth a request takes.

The sampled cluster says how much it reads of each array. The first requests of the clusters that run at
the same time say how many of them read the same part of it (`sharers`). The rule for what follows:

* The clusters of one wave walk through their parts in step. The first to touch a line waits for
HBM, and the others with it. A line that an earlier wave has read is still there if a wave's lines fit into
L2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ptxsim.timing.chip import Chip

MOST_SETS = 8  # of arrays that a harness rotates (tracks/measure.py)


@dataclass
class Locality:
    """Of one launch on one chip."""

    chip: Chip
    sms: int  # that work
    miss: dict[int, float] = field(default_factory=dict)  # array -> share of the requests that wait for HBM
    sharers: dict[int, float] = field(default_factory=dict)  # array -> clusters that read a line together
    writes_back: bool = False  # what is written goes on to HBM within the launch
    behind: float = 1.0  # share of the clusters that sit on an SM with as many as any other holds
    patched: float = 0.0  # share of the written bytes that is in sectors that are written in part
    once: dict[int, float] = field(default_factory=dict)  # array -> share of the writes that reaches HBM
    slots: int = 1  # CTAs of an SM at a time
    l1_bytes: float = 0.0  # of an SM that shared memory leaves
    evicted: float = 0.0  # bytes that L2 writes back to HBM for each that it reads from there

    def l2_seconds(self, segment: int) -> float:
        """Time of all of L2 that a byte takes: shared lines are cheaper than distinct ones."""
        alone = 1.0 / max(1.0, self.sharers.get(segment, 1.0))
        return alone / self.chip.l2_rate + (1.0 - alone) / self.chip.l2_shared_rate

    def waits(self, segment: int) -> float:
        """Share of the sampled cluster's requests that wait for HBM. SMs that hold fewer clusters are ahead:
        what one of their clusters reads too is in L2 by then.
        """
        others = max(1.0, self.sharers.get(segment, 1.0)) - 1.0
        return self.miss.get(segment, 0.0) * self.behind**others

    def in_l1(self, since: int) -> float:
        """Share of reads that L1 answers, of lines that a CTA read before its last `since` bytes."""
        return survives(since * self.slots, self.l1_bytes) if since else 1.0

    def in_l2(self, since: int) -> float:
        """The same of L2, of those that L1 does not answer."""
        return survives(since * self.slots * self.sms, self.chip.l2_whole)

    def written_seconds(self, segment: int) -> float:
        """Time of all of HBM that a written byte takes. Of a sector written in part L2 reads the rest."""
        again = self.patched / self.chip.hbm_rate
        return self.reaches_hbm(segment) * (1.0 / self.chip.hbm_write_rate + again)

    def reaches_hbm(self, segment: int) -> float:
        """Share of the bytes written to an array that L2 writes back: it puts parts of a sector together."""
        return self.once.get(segment, 1.0) if self.writes_back else 0.0

    def hbm_seconds(self, segment: int) -> float:
        return 1.0 / max(1.0, self.sharers.get(segment, 1.0)) / self.chip.hbm_rate

    def evicted_seconds(self, segment: int) -> float:
        """Time of all of HBM that writing back takes for a byte that is read."""
        return self.evicted / max(1.0, self.sharers.get(segment, 1.0)) / self.chip.hbm_write_rate

    def copy_seconds(self, segment: int, size: float, parted: float) -> float:
        """Time of all of L2 that a copy of `size` bytes takes. Parted sectors gain nothing from being shared;
        of what TMA brings in them only half counts among its bytes.
        """
        return max(0.0, size - parted) * self.l2_seconds(segment) + parted / self.chip.l2_rate


def locality(
    chip: Chip,
    sms: int,
    reads: dict[int, int],
    sizes: dict[int, int],
    sharers: dict[int, float],
    clusters: int,
    together: int,
    tiles: int = 1,
    mean: float = 1.0,
    gathered=(),
) -> Locality:
    """reads: bytes that a cluster reads of each array; sizes: of every array that the kernel touches.

    clusters: of the grid; together: that run at the same time; tiles: that the sampled one does in
    turn; mean: work of a cluster, as a share of the sampled one's; gathered: arrays that are read at random.
    """
    found = Locality(chip, sms, {}, dict(sharers))
    unique = {
        s: min(sizes[s], size / tiles * min(clusters, together) / sharers.get(s, 1.0))
        for s, size in reads.items()
        if s in sizes  # another CTA's shared memory is no array
    }
    again = held(chip, sum(unique.values()))  # of what the wave before has read
    total = sum(sizes.values())
    sets = max(1, min(MOST_SETS, math.ceil(chip.rotated / total))) if total else 1
    left = survives(sets * total + chip.flushed, chip.l2_whole)  # of what the launch before on these has read
    found.writes_back = total > chip.l2_bytes
    waves = max(1.0, clusters * mean / together * tiles)  # the last need not be full
    for segment, size in unique.items():
        random = segment in gathered
        asked = clusters * mean * reads[segment] if random else waves * size
        first = min(1.0, sizes[segment] / asked) if asked else 1.0
        stays = held(chip, sizes[segment]) if random else again
        found.miss[segment] = first * (1.0 - left) + (1.0 - first) * (1.0 - stays)
    return found


def evicted(chip: Chip, read: float, written: float) -> float:
    """Bytes that L2 writes back for each that it reads from HBM, where a harness has left its own there.

    A launch that reads and writes so many bytes takes their place; what it writes is counted as written.
    """
    if not chip.flushed or not read:
        return 0.0
    return min(chip.l2_dirty_share, chip.l2_dirty / (read + written))


def survives(size: float, whole: float) -> float:
    """Share of `size` bytes, each read once in turn, that a cache of `whole` bytes still has the next time.

    Measured for L2 (l2_whole); plain_softmax_5000x7000 finds 0.66 in L1 at 0.88 of it.
    """
    return min(1.0, max(0.0, (1.14 - size / whole) / 0.48)) if size else 1.0


def held(chip: Chip, size: float) -> float:
    """Share of `size` bytes, read over and over by all SMs, that L2 still holds when they are read again."""
    return min(1.0, chip.l2_bytes / size) if size else 1.0
