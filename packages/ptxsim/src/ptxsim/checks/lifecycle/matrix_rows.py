"""Whether the lanes of an ldmatrix give the rows of a tile (PTX ISA 9.7.14.5.15): an instruction that reads
rows twice, beside rows that were written and that nobody ever reads. Either alone may be meant.
"""

from __future__ import annotations

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.lifecycle.shared_memory import SharedMemory
from ptxsim.events.observer import Observer, observer_of
from ptxsim.events.views import Cluster, Launch
from ptxsim.isa.address_map import OFFSET_MASK, RANK_SHIFT, SHARED_BASE, SHARED_END
from ptxsim.jit import bytecode
from ptxsim.report.findings import Reporter
from ptxsim.units.ldmatrix import decode_form

_MOST = 256  # executions of an instruction that are looked at
_UNITS = {"wgmma", "tcgen05", "bulk"}  # they read shared memory, too


class MatrixRows(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter
        program = launch.program.by_row
        forms = {row: decode_form(i).rows for row, i in program.items() if i.op == "ldmatrix"}
        self.on = bool(forms) and not any(_UNITS & {i.op, *i.mods} for i in program.values())
        self.left = {row: _MOST for row in forms}
        self.counts = forms
        self.read = np.zeros((launch.ctas_per_cluster, launch.shared_window // 16 + 1), bool)

    def start(self, cluster: Cluster) -> None:
        self.read[:] = False
        self.again: dict[int, tuple[int, int]] = {}  # row of an ldmatrix -> (place of a row, thread)

    def accesses(self, cluster: Cluster, log: np.ndarray) -> None:
        places, loads = log[:, bytecode.LOG_PLACE], log[:, bytecode.LOG_SIZE] & 1 == 0
        near = places[loads & (places >= SHARED_BASE) & (places < SHARED_END)]
        self.read[near - SHARED_BASE >> RANK_SHIFT, (near & OFFSET_MASK) >> 4] = True
        for row, count in self.counts.items():
            if not self.left[row] or row in self.again:
                continue
            own = log[log[:, bytecode.LOG_ROW] == row]
            if len(own) % count == 0 and len(own):
                self.left[row] = max(0, self.left[row] - len(own) // count)
                self._look(row, own, np.sort(own[:, bytecode.LOG_PLACE].reshape(-1, count), axis=1))

    def _look(self, row: int, log: np.ndarray, given: np.ndarray) -> None:
        twice = np.argwhere(np.diff(given, axis=1) == 0)
        if len(twice):
            at, lane = twice[0].tolist()
            self.again[row] = int(given[at, lane]), int(log[at * given.shape[1], bytecode.LOG_THREAD])

    def finish(self, cluster: Cluster) -> None:
        memory = observer_of(cluster.bus, SharedMemory)
        if memory is None:
            return
        for row, (place, thread) in self.again.items():
            rank, offset = (place - SHARED_BASE) >> RANK_SHIFT, place & OFFSET_MASK
            start, length = self.reporter.shared_extent(offset)
            chunks = slice(-(-start // 16), (start + length) // 16)
            unread = memory.chunks_written(rank)[chunks] & ~self.read[rank, chunks]
            if unread.any():
                cause, buffer = CAUSES["matrix-rows"], self.reporter.shared_buffer(offset)
                message = cause.tell(buffer=buffer, unread=int(unread.sum()))
                where = cluster.splits[thread // 32 * 32].at(0xFFFF_FFFF, row)
                self.reporter.add("collective", "review", message, cause, where, ("rows", buffer))
