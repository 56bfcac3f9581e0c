"""The mbarriers of a cluster, by place. Compiled code looks at the same table, and makes barriers itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ptxsim.jit import bytecode
from ptxsim.jit.host import address_in_host
from ptxsim.jit.translate import shared_address, shared_place
from ptxsim.machine.mbarrier import MBarrier

Place = tuple[int, int]  # (CTA rank, offset in its window)

FEW = 64  # that the table has room for at first


class MBarriers(Mapping[Place, MBarrier]):
    """A place keeps its row when its barrier is invalidated."""

    def __init__(self, control: np.ndarray):
        """control: the control words of the cluster, which say how many rows there are."""
        self._control = control
        self._use(np.zeros((FEW, bytecode.MB_COLUMNS), np.int64))
        self.clear()

    def clear(self) -> None:
        """A new cluster has none."""
        self._rows: dict[Place, MBarrier] = {}
        self._control[bytecode.BARRIERS] = self._control[bytecode.PHASES_DONE] = 0

    def get(self, place, default=None):
        if self._control.item(bytecode.BARRIERS) != len(self._rows):
            self._adopt()
        found = self._rows.get(place)
        return found if found is not None and found.lives else default

    def __getitem__(self, place: Place) -> MBarrier:
        found = self.get(place)
        if found is None:
            raise KeyError(place)
        return found

    def __contains__(self, place) -> bool:
        return self.get(place) is not None

    def __iter__(self) -> Iterator[Place]:
        self._adopt()
        return (place for place, one in self._rows.items() if one.lives)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def make(self, place: Place, count: int) -> MBarrier:
        """A fresh barrier there; MBarrierError for a count that is not legal."""
        self._adopt()
        made = self._rows.get(place)
        if made is None:
            made = MBarrier.with_count(count)
            row = len(self._rows)
            if row == len(self._table):
                self._grow()
            self._table[row, bytecode.MB_PLACE] = shared_address(*place)
            made.move(self._table[row])
            self._rows[place] = made
            self._control[bytecode.BARRIERS] = row + 1
        made.begin(count)
        return made

    def remove(self, place: Place) -> None:
        self._rows[place].words[bytecode.MB_LIVES] = 0

    def went_on(self) -> list[Place]:
        """Those that compiled code has moved to another phase since they were asked for."""
        self._control[bytecode.PHASES_DONE] = 0
        self._adopt()
        moved = [item for item in self._rows.items() if item[1].phase != item[1].words[bytecode.MB_TOLD]]
        for _, one in moved:
            one.words[bytecode.MB_TOLD] = one.phase
        return [place for place, _ in moved]

    def _adopt(self) -> None:
        """Learns of barriers that compiled code has made."""
        for row in range(len(self._rows), self._control.item(bytecode.BARRIERS)):
            place = shared_place(self._table.item(row, bytecode.MB_PLACE))
            self._rows[place] = MBarrier(self._table[row])

    def _grow(self) -> None:
        self._use(np.concatenate([self._table, np.zeros_like(self._table)]))
        for row, one in enumerate(self._rows.values()):
            one.move(self._table[row])

    def _use(self, table: np.ndarray) -> None:
        self._table = table
        self._control[bytecode.BARRIER_PTR] = address_in_host(table)
        self._control[bytecode.BARRIER_ROOM] = len(table)
