"""Reads through tensor maps of buffers that nothing else has touched: most kernels read their inputs this
way.

Reads do not conflict with reads, so they are only kept, and looked up once something else accesses the
buffer.
"""

from __future__ import annotations

import numpy as np

from ptxsim.checks.race.tma_ranges import box_spans

BASE, END, POSITION, HELD, SEGMENT_COLUMNS = range(5)  # columns, a row per buffer. HELD: no other access yet


class DeferredReads:
    def __init__(self, memory):
        """segments: int64 (n, SEGMENT_COLUMNS), the buffers whose accesses count; size: their bytes in the
        shadow.
        """
        rows, self.places, self.size = [], [], 0  # places: (row, position) per segment of memory
        for base, end, _, logged in memory.rows:
            self.places.append((len(rows), self.size))
            if logged:
                rows.append((base, end, self.size, 1))
                self.size += -(-(end - base) // 1024) * 1024
        self.segments = np.array(rows or [(0,) * SEGMENT_COLUMNS], np.int64)
        self.kept: dict[int, list] = {}  # row of a buffer -> its reads

    def keep(self, now: int, op, tmap, start: tuple[int, ...]) -> bool:
        """Keeps a read of cluster `now` - 1 for later; False if it must be looked up at once."""
        row = self.places[tmap.segment][0]
        if not self.segments[row, HELD]:
            return False
        self.kept.setdefault(row, []).append((now, op.queue, op.epoch, op.row, op.flags, tmap, start))
        return True

    def spans(self, tmap, start: tuple[int, ...]) -> np.ndarray:
        """Where a box lies in the shadow: int64 (n, 2)."""
        spans = box_spans(tmap, start)
        return spans + (self.places[tmap.segment][1] + tmap.byte_offset) if len(spans) else spans

    def row_of(self, place: int) -> int:
        """The row of the buffer at a logged place."""
        inside = (self.segments[:, BASE] <= place) & (place < self.segments[:, END])
        return int(np.flatnonzero(inside)[0])

    def place_of(self, address: int) -> int:
        """The position in the shadow of a byte of a buffer."""
        base, _, position, _ = self.segments[self.row_of(address)].tolist()
        return position + address - base

    def end(self, row: int) -> list:
        """The kept reads of a buffer; from now on its reads are looked up at once."""
        self.segments[row, HELD] = 0
        return self.kept.pop(row, [])
