"""Estimates which requests hit L2, and how much of the chip's bandwidth a request takes.

The sampled cluster tells how much is read of each array. The first requests of clusters that run at the same
time tell how many of them read the same part of it (`sharers`). The clusters of a wave are assumed to
advance through their parts in step. The first to touch a line waits for HBM, and the others wait with it. A
line that an earlier wave has read still hits if the lines of a wave fit into L2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ptxsim.timing.chip import Chip

MOST_SETS = 8  # sets of arrays through which a harness rotates at most (tracks/measure.py)


@dataclass
class Locality:
    """Cache behaviour and bandwidth shares of one launch on one chip."""

    chip: Chip
    sms: int  # SMs in use
    miss: dict[int, float] = field(default_factory=dict)  # array -> share of the requests that wait for HBM
    sharers: dict[int, float] = field(default_factory=dict)  # array -> clusters that read a line together
    writes_back: bool = False  # whether writes reach HBM within the launch
    behind: float = 1.0  # share of the clusters that are on the SMs with the most clusters
    patched: float = 0.0  # share of the written bytes that are in partially written sectors
    once: dict[int, float] = field(default_factory=dict)  # array -> share of the writes that reaches HBM
    slots: int = 1  # CTAs on an SM at a time
    l1_bytes: float = 0.0  # bytes of L1 on an SM that shared memory leaves free
    evicted: float = 0.0  # bytes that L2 writes back to HBM per byte that it reads from HBM

    def l2_seconds(self, segment: int) -> float:
        """Seconds of the whole L2 that a byte takes; lines that clusters share are cheaper than others."""
        alone = 1.0 / max(1.0, self.sharers.get(segment, 1.0))
        return alone / self.chip.l2_rate + (1.0 - alone) / self.chip.l2_shared_rate

    def waits(self, segment: int) -> float:
        """Share of the sampled cluster's requests that wait for HBM. SMs with fewer clusters are ahead, so
        what their clusters read too is already in L2.
        """
        others = max(1.0, self.sharers.get(segment, 1.0)) - 1.0
        return self.miss.get(segment, 0.0) * self.behind**others

    def in_l1(self, since: int) -> float:
        """Share of reads that hit L1, for lines after which a CTA has read another `since` bytes."""
        return survives(since * self.slots, self.l1_bytes) if since else 1.0

    def in_l2(self, since: int) -> float:
        """The same for L2, of the reads that miss L1."""
        return survives(since * self.slots * self.sms, self.chip.l2_whole)

    def written_seconds(self, segment: int) -> float:
        """Seconds of the whole HBM that a written byte takes; L2 reads the rest of partly written sectors."""
        again = self.patched / self.chip.hbm_rate
        return self.reaches_hbm(segment) * (1.0 / self.chip.hbm_write_rate + again)

    def reaches_hbm(self, segment: int) -> float:
        """Share of the bytes written to an array that L2 writes back; L2 combines writes to a sector."""
        return self.once.get(segment, 1.0) if self.writes_back else 0.0

    def hbm_seconds(self, segment: int) -> float:
        return 1.0 / max(1.0, self.sharers.get(segment, 1.0)) / self.chip.hbm_rate

    def evicted_seconds(self, segment: int) -> float:
        """Seconds of the whole HBM that writing back other lines takes per byte that is read."""
        return self.evicted / max(1.0, self.sharers.get(segment, 1.0)) / self.chip.hbm_write_rate

    def copy_seconds(self, segment: int, size: float, parted: float) -> float:
        """Seconds of the whole L2 that a copy of `size` bytes takes. Parted sectors do not become cheaper if
        they are shared; of the bytes that TMA moves in them only half are bytes of the copy.
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
    """The Locality of a launch. reads: bytes that a cluster reads, by array; sizes: bytes of every array in
    use.

    sharers: clusters that read a line together, by array; clusters: of the grid; together: clusters that run
    at the same time; tiles: processed in turn by the sampled cluster; mean: mean work of a cluster, as a
    share of the sampled one's; gathered: arrays that are read at random.
    """
    found = Locality(chip, sms, {}, dict(sharers))
    unique = {
        s: min(sizes[s], size / tiles * min(clusters, together) / sharers.get(s, 1.0))
        for s, size in reads.items()
        if s in sizes  # not the shared memory of another CTA
    }
    again = held(chip, sum(unique.values()))  # share of the previous wave's reads that still hits
    total = sum(sizes.values())
    sets = max(1, min(MOST_SETS, math.ceil(chip.rotated / total))) if total else 1
    left = survives(sets * total + chip.flushed, chip.l2_whole)  # of the previous launch's reads
    found.writes_back = total > chip.l2_bytes
    waves = max(1.0, clusters * mean / together * tiles)  # the last may be partial
    for segment, size in unique.items():
        random = segment in gathered
        asked = clusters * mean * reads[segment] if random else waves * size
        first = min(1.0, sizes[segment] / asked) if asked else 1.0
        stays = held(chip, sizes[segment]) if random else again
        found.miss[segment] = first * (1.0 - left) + (1.0 - first) * (1.0 - stays)
    return found


def evicted(chip: Chip, read: float, written: float) -> float:
    """Bytes that L2 writes back per byte that it reads from HBM, if a harness has left dirty lines in L2.

    A launch that reads and writes so many bytes replaces these lines; its own writes are counted elsewhere.
    """
    if not chip.flushed or not read:
        return 0.0
    return min(chip.l2_dirty_share, chip.l2_dirty / (read + written))


def survives(size: float, whole: float) -> float:
    """Share of a stream of `size` bytes that hits a cache of `whole` bytes when it is read a second time.

    Measured for L2 (l2_whole). For L1, plain_softmax_5000x7000 hits 0.66 at 0.88 of its size.
    """
    return min(1.0, max(0.0, (1.14 - size / whole) / 0.48)) if size else 1.0


def held(chip: Chip, size: float) -> float:
    """Share of `size` bytes, read repeatedly by all SMs, that L2 still holds at the next read."""
    return min(1.0, chip.l2_bytes / size) if size else 1.0
