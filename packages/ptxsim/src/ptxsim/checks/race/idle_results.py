"""What becomes of the results of tcgen05.mma: which cells of tensor memory depend on some bytes of shared
memory, and whether threads store what they load from these cells.

A product may have more rows or columns than its tile. What it reads for them changes nothing if nobody
stores what comes of it. Where this file cannot tell, it assumes more rather than less: a cell once reached
counts for the whole run, and an instruction that reads one from tensor memory reaches all that it writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ptxsim.checks.race.part import Part
from ptxsim.checks.static_flow import targets
from ptxsim.events.records import Footprint, SharedSpan, TmemCells
from ptxsim.events.views import Cluster, Split
from ptxsim.frontend.ast import registers_of
from ptxsim.machine.tensor_memory import COLUMNS, LANES
from ptxsim.units.tcgen05_product import Product, elements_fed

_ALL: frozenset[str] = frozenset()  # registers: all of the instruction's results


class IdleResults(Part):
    """Part of the RaceDetector: where results go."""

    def start(self, cluster: Cluster) -> None:
        self.loads: dict[tuple[int, int], set[TmemCells]] = {}  # (row, warp) of tcgen05.ld
        self.passing: set[Footprint] = set()  # of instructions that read tensor memory

    def tmem_issue(self, cluster: Cluster, split: Split, cells: TmemCells, write: bool) -> None:
        if not write:
            self.loads.setdefault((split.row, split.warp), set()).add(cells)

    def tensor_execute(self, cluster: Cluster, works: list) -> None:
        self.passing.update(work.footprint for work in works if work.footprint.cells_read)

    def fed(self, works: Sequence, written: np.ndarray) -> np.ndarray:
        """bool (CTAs, lanes, columns): the cells that these works fill from these spans of bytes."""
        window = self.races.history.window
        cells = np.zeros((self.races.cluster.ctas, LANES, COLUMNS), bool)
        for work in works:
            if isinstance(work.task, Product):
                cells[elements_fed(work.task, lambda span: _within(span, written, window))] = True
            elif any(_within(span, written, window).any() for span in work.footprint.reads):
                _fill(cells, work.footprint)
        return cells

    def in_vain(self, shares: set[tuple[int, int]], results: np.ndarray | None) -> bool:
        """Whether no thread stores anything that depends on these shares of wgmma, (row, first agent of the
        warp), or on these cells. A negative agent: it is not known who reads.
        """
        if self.races.cluster.stuck:  # before they could store it
            return False
        idle, loads = self.races.idle_loads, [(row, at + np.arange(32), _ALL) for row, at in shares]
        loads += self._loaded(results) if results is not None else ()
        return all(agents[0] >= 0 and idle.in_vain(row, agents, names) for row, agents, names in loads)

    def _loaded(self, cells: np.ndarray) -> Iterator[tuple[int, np.ndarray, frozenset[str]]]:
        """(row, threads, registers) of the loads of these cells and of what is computed from them."""
        cells, count = cells.copy(), -1
        while count != (count := int(cells.sum())):
            for footprint in self.passing:
                if any(cells[part.block].any() for part in footprint.cells_read):
                    _fill(cells, footprint)
        for (row, warp), places in self.loads.items():
            instr = self.races.launch.program.instrs[row]
            names = [*targets(instr), *registers_of(instr.operands[1:2] if "red" in instr.mods else ())]
            for place in places:
                found = cells[place.rank][place.index].reshape(-1, place.lanes.shape[-2], 32).any(0)
                registers = np.flatnonzero(found.any(1))
                if len(registers):
                    own = [names[i] for i in registers] if len(names) == len(found) else names
                    yield row, warp * 32 + np.flatnonzero(found.any(0)), frozenset(own)


def _fill(cells: np.ndarray, footprint: Footprint) -> None:
    for part in footprint.cells_written:
        cells[part.block] = True


def _within(span: SharedSpan, written: np.ndarray, window: int) -> np.ndarray:
    """bool, per chunk of the span: whether it lies in these spans of bytes, at least in part."""
    first = span.chunks[..., None] * 16 + span.rank * window
    return np.any((first < written[:, 1]) & (first + 16 > written[:, 0]), axis=-1)
