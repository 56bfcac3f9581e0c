"""The mbarriers of a cluster, by place, in a table that compiled code also reads and writes."""

from __future__ import annotations

import numpy as np

from ptxsim.jit import bytecode
from ptxsim.jit.host import address_in_host
from ptxsim.jit.translate import shared_address, shared_place
from ptxsim.machine.mbarrier import MBarrier

Place = tuple[int, int]  # (CTA rank, offset in its window)
FEW = 64  # barriers that the table initially has room for


class MBarriers(dict[Place, MBarrier]):
    """Place -> initialised mbarrier. A place keeps its row when its barrier is invalidated."""

    def __init__(self, control: np.ndarray):
        """control: the control words of the cluster, which say how many rows there are."""
        super().__init__()
        self._control = control
        self._table = np.zeros((FEW, bytecode.MB_COLUMNS), np.int64)
        self.start()

    def start(self) -> None:
        """Removes all barriers, for a new cluster."""
        self.clear()
        self._rows: dict[Place, MBarrier] = {}
        self.made_at: dict[Place, int] = {}  # row of the last mbarrier.init outside of compiled code
        self._use(self._table)
        self._control[bytecode.BARRIERS] = self._control[bytecode.PHASES_DONE] = 0
        self._control[bytecode.REMADE] = 0

    def make(self, place: Place, count: int) -> MBarrier:
        """Initialises a barrier at a place; raises MBarrierError if the count is not legal."""
        made = self._rows.get(place)
        if made is None:
            MBarrier.require_legal(count)
            row = len(self._rows)
            if row == len(self._table):
                self._grow()
            self._table[row, bytecode.MB_PLACE] = shared_address(*place)
            made = self._rows[place] = MBarrier.at(self._table, row)
            self._control[bytecode.BARRIERS] = row + 1
        made.begin(count)
        self[place] = made
        return made

    def remove(self, place: Place) -> None:
        self.pop(place).lives = 0

    def ended(self, place: Place) -> bool:
        """Whether there was a barrier at this place, and mbarrier.inval has ended it."""
        return place in self._rows and place not in self

    def last(self, place: Place) -> MBarrier:
        """The barrier at this place or, if mbarrier.inval has ended it, that one as it was at its end."""
        return self._rows[place]

    def learn(self) -> None:
        """Takes over the barriers that compiled code has initialised or invalidated."""
        self._control[bytecode.REMADE] = 0
        for row in range(len(self._rows), self._control.item(bytecode.BARRIERS)):
            place = shared_place(self._table.item(row, bytecode.MB_PLACE))
            self._rows[place] = MBarrier.at(self._table, row)
        for place, one in self._rows.items():
            if one.lives:
                self[place] = one
            else:
                self.pop(place, None)

    def went_on(self) -> list[Place]:
        """Places of the barriers whose phase compiled code has completed since the last call."""
        self._control[bytecode.PHASES_DONE] = 0
        moved = [place for place, one in self.items() if one.phase != one.told]
        for place in moved:
            self[place].told = self[place].phase
        return moved

    def _grow(self) -> None:
        self._use(np.concatenate([self._table, np.zeros_like(self._table)]))
        self._rows = {place: MBarrier.at(self._table, row) for row, place in enumerate(self._rows)}
        self.update({place: self._rows[place] for place in self})

    def _use(self, table: np.ndarray) -> None:
        self._table = table
        self._control[bytecode.BARRIER_PTR] = address_in_host(table)
        self._control[bytecode.BARRIER_ROOM] = len(table)
