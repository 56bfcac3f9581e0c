"""The accesses of a cluster to global memory, gathered while it runs, for clusters that are only compared
with another one.

They do not race with each other if the cluster writes no byte twice and no buffer that it reads. At the end
of the cluster, they are added to the access history of the launch, where they can only conflict with accesses
of other clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptxsim.checks.race.access_history import AccessHistory
from ptxsim.checks.race.async_work import Issued
from ptxsim.checks.race.deferred_reads import BASE, END, POSITION
from ptxsim.checks.race.shadow_order import CONSTANT, EPOCH_MASK
from ptxsim.checks.race.tma_ranges import ascending, merged
from ptxsim.grid.repeats.global_rows import RUN_COLUMNS, RUN_FIRST, RUN_LAST, RUN_ROW, RUN_WRITE
from ptxsim.machine.tensor_map import MAP_BYTES

NO_BUFFER = -1  # parameters and constants
_NO_RUNS, _NO_SPANS = np.zeros((0, RUN_COLUMNS), np.int64), np.zeros((0, 2), np.int64)


class BufferAccess(NamedTuple):
    """Accesses of threads to a buffer, by instructions that the checks need not distinguish."""

    row: int  # of one of these instructions
    write: bool
    buffer: int  # row of history.reads.segments
    spans: np.ndarray  # addresses, int64 (n, 2), in any order


class ClusterFootprint:
    def __init__(self, history: AccessHistory, most: int):
        """most: bytes of runs above which no more are kept, and `apart` returns False."""
        self.history, self.most = history, most
        rows = np.arange(len(history.kinds))
        flags = np.where(history.kinds & CONSTANT, rows, -1 - history.kinds)
        self.group_of_row = np.unique(flags, return_inverse=True)[1]
        segments = history.reads.segments
        self.to_shadow = segments[:, POSITION] - segments[:, BASE]
        self.clear()

    def clear(self) -> None:
        """Resets the footprint, for a new cluster."""
        self.read: set[int] = set()  # buffers, as rows of history.reads.segments
        self.written: set[int] = set()
        self.boxes: list[tuple] = []  # (row of the program, tensor map, start, whether it is written)
        self.runs: list[np.ndarray] = []  # accesses of threads, in the format of global_rows.py
        self.bytes = 0  # of all runs

    def box(self, row: int, tmap, start: tuple[int, ...], write: bool) -> None:
        if tmap.array.size:
            self.boxes.append((row, tmap, tuple(start), write))
            (self.written if write else self.read).add(self.history.reads.places[tmap.segment][0])

    def map_of(self, row: int, at: int) -> None:
        """Adds the read of a copy's tensor map at address `at` in global memory."""
        run = np.zeros((1, RUN_COLUMNS), np.int64)
        run[0, [RUN_ROW, RUN_FIRST, RUN_LAST]] = row, at, at + MAP_BYTES
        self.add(run)

    def add(self, runs: np.ndarray) -> None:
        self.bytes += runs.nbytes
        if self.bytes < self.most:
            self.runs.append(runs)

    def overlap(self) -> bool:
        """Whether the cluster has so far written to a buffer that it reads, or has too many runs to tell."""
        self.accesses = self._accesses(np.concatenate([_NO_RUNS, *self.runs]))
        for access in self.accesses:
            (self.written if access.write else self.read).add(access.buffer)
        return self.bytes >= self.most or bool(self.read & self.written)

    def apart(self) -> bool:
        """Whether the cluster cannot race with itself: writes no byte twice, and no buffer that it reads."""
        if self.overlap():
            return False
        written = [self._in_shadow(access) for access in self.accesses if access.write]
        written += [self.history.reads.spans(tmap, start) for _, tmap, start, write in self.boxes if write]
        spans = ascending(np.concatenate([_NO_SPANS, *written]))
        return bool((spans[1:, 0] >= spans[:-1, 1]).all())

    def enter(self, index: int) -> bool:
        """Adds all accesses to the history, as cluster `index`; True if that shows a conflict. Call `apart`
        before.
        """
        history = self.history
        history.begin(index)
        knows = np.full(1, EPOCH_MASK, np.int32)  # everything by agent 0, which makes all these accesses
        for row, tmap, start, write in self.boxes:
            history.box(tmap, start, write, Issued("copy", row, 0, knows, knows, knows, 0, 1))
        for access in self.accesses:
            spans = merged(self._in_shadow(access))
            history.merged(access.row, spans, [access.buffer], access.write, knows)
        return bool(history.pairs)

    def _in_shadow(self, access: BufferAccess) -> np.ndarray:
        return access.spans + self.to_shadow[access.buffer]

    def _buffers(self, runs: np.ndarray) -> np.ndarray:
        """The row of each run's buffer. All accesses of a run start in the same buffer."""
        segments, place = self.history.reads.segments, runs[:, RUN_FIRST]
        found = np.full(len(runs), NO_BUFFER)
        for i, (base, end) in enumerate(segments[:, [BASE, END]].tolist()):
            found[(base <= place) & (place < end)] = i
        return found

    def _accesses(self, runs: np.ndarray) -> list[BufferAccess]:
        """The accesses by buffer. One row represents all rows with the same flags; which row it is matters
        only for stores of constants.
        """
        buffers = self._buffers(runs)
        kinds = self.group_of_row[runs[:, RUN_ROW]] * 2 + runs[:, RUN_WRITE]
        groups = np.where(buffers == NO_BUFFER, 0, 1 + kinds * len(self.to_shadow) + buffers)
        found = []
        for group in np.flatnonzero(np.bincount(groups)).tolist():
            mine = runs[groups == group]
            if group:
                buffer = (group - 1) % len(self.to_shadow)
                spans = mine[:, [RUN_FIRST, RUN_LAST]]
                found.append(BufferAccess(int(mine[0, RUN_ROW]), bool(mine[0, RUN_WRITE]), buffer, spans))
        return found
