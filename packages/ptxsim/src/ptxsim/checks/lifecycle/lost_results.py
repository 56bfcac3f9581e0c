"""Results in tensor memory that a tcgen05.mma overwrites before anybody has read them: sums that begin anew
in every round (enable-input-d false), or values that threads have put back to be added to. One product of the
same operands, again and again, is left alone: programs that only measure do that.
"""

from __future__ import annotations

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.observer import Observer
from ptxsim.events.records import Footprint, TmemCells
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.machine.tensor_memory import COLUMNS, LANES
from ptxsim.report.findings import Reporter

_USED, _MADE, _READ, _CHANGED = range(4)  # by a product; by ld; by ld, then st
_AFTER_LD, _AFTER_ST = (np.array(to, np.uint8) for to in ((_USED, _READ, _READ, _USED), (0, 0, 3, 3)))


class LostResults(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter

    def start(self, cluster: Cluster) -> None:
        self.state = np.zeros((cluster.ctas, LANES, COLUMNS), np.uint8)
        self.sums: dict[tuple, tuple] = {}  # D -> (descriptors of its first product, number of its products)
        self.lost: list = []  # (message, where)
        self.whole: set[object] = set()  # accumulators that are _MADE, all of them

    def tmem_access(self, cluster: Cluster, split: Split, cells: TmemCells, write: bool) -> None:
        memory, becomes = self.state[cells.rank], _AFTER_ST if write else _AFTER_LD
        cells.put(memory, becomes[cells.held(memory)])
        self.whole.clear()

    def tmem_free(self, cluster: Cluster, split: Split, start: int, columns: int, group: int) -> None:
        self.state[split.cta, :, start : start + columns] = _USED
        self.whole.clear()

    def tensor_execute(self, cluster: Cluster, works: list) -> None:
        made, first = works[0].footprint, works[0]
        for cell in {cell for work in works for cell in work.footprint.cells_read}:
            self.state[cell.block] = _USED
            self.whole.clear()
        if made.tile is None:
            for cell in made.cells_written:
                self.state[cell.block] = _USED
            return
        if not first.accumulates and not first.partial:
            self._overwrites(first, made)
        begun, count = self.sums.get(made.cells_written, (made.descriptors, 0))
        if not first.accumulates:
            begun, count = made.descriptors, 0
        self.sums[made.cells_written] = begun, count + len(works)
        if made.cells_written not in self.whole:
            self.whole.add(made.cells_written)
            for cell in made.cells_written:
                self.state[cell.block] = _MADE

    def _overwrites(self, work, made: Footprint) -> None:
        cells, (begun, count) = made.cells_written, self.sums.get(made.cells_written, ((), 0))
        blocks = [self.state[cell.block] for cell in cells]
        changed = any((block == _CHANGED).any() for block in blocks)
        again = count == 1 and begun == made.descriptors  # as programs do that only measure
        if changed or not again and all((block == _MADE).all() for block in blocks):
            cause = CAUSES["starts-anew"]
            what = "threads have put there" if changed else "earlier products have left there"
            message = cause.tell(column=cells[0].column, what=what)
            self.lost.append((message, work.where))

    def finish(self, cluster: Cluster) -> None:
        """Runs after the race detector: a product that should have waited for a read is a race."""
        found = self.reporter.by_identity.values()
        sides = [
            f.evidence.get(side, {}) for f in found if f.severity == "error" for side in ("first", "second")
        ]
        if not any(side.get("kind") == "mma" for side in sides):
            for message, where in self.lost:
                self.reporter.add("descriptor", "review", message, CAUSES["starts-anew"], where, "anew")
