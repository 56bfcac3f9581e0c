"""The tensor maps that compiled code can use, and the list of its copies, which Python reads afterwards.

A row holds the 128 bytes that its map was decoded from. If memory now holds other bytes, the row does not
apply, and the instruction's handler decodes them.
"""

from __future__ import annotations

import numpy as np

from ptxsim.jit import bytecode
from ptxsim.jit.host import address_in_host
from ptxsim.machine.global_memory import GlobalMemory
from ptxsim.machine.im2col_map import Im2colMap
from ptxsim.machine.launch_view import Launch
from ptxsim.machine.tensor_box import map_words
from ptxsim.machine.tensor_map import MAP_BYTES, TensorMap

ROOM = 32  # most maps, and most copies before Python must read the list
MT_ADDRESS, MT_SEGMENT, MT_WORDS, MT_BYTES = range(4)  # columns; the 128 bytes, as words, come last
NOWHERE = -1  # as an address: the row is free
MT_COLUMNS = MT_BYTES + MAP_BYTES // 8
CP_STORES, CP_MAP, CP_START = range(3)  # columns of a copy; the coordinates come last
CP_COLUMNS = CP_START + 5


class MapTable:
    """The tensor maps and copies of a cluster."""

    def __init__(self, control: np.ndarray):
        """control: the control words of the cluster."""
        self._control = control
        self._rows = np.zeros((ROOM, MT_COLUMNS), np.int64)
        self._copies = np.zeros((ROOM, CP_COLUMNS), np.int64)
        self._control[bytecode.MAPS_PTR] = address_in_host(self._rows)
        self._control[bytecode.COPIES_PTR] = address_in_host(self._copies)
        self.let_go()

    def start(self, launch: Launch) -> None:
        """Adds the maps in the parameters of a launch."""
        self._memory, self._given = launch.memory, list(launch.maps)  # addresses of maps in parameters
        for address, tmap in launch.maps.items():
            self.add(address, tmap)

    def begin(self) -> None:
        """Forgets the maps in memory, when a cluster starts: what it has used does not depend on others."""
        rows = self._rows[: len(self._maps), MT_ADDRESS]
        rows[~np.isin(rows, self._given)] = NOWHERE

    def let_go(self) -> None:
        """Forgets all maps."""
        self._maps: list[TensorMap] = []
        self._memory = GlobalMemory()
        self._given = []
        self._control[bytecode.MAPS] = 0

    def add(self, address: int, tmap: TensorMap) -> None:
        """Adds the map stored at an address, if compiled code can use it and there is room."""
        data = self._memory.view(address, MAP_BYTES)
        if data is None or tmap.packed > 1 or tmap.padded or isinstance(tmap, Im2colMap) or tmap.passes_end:
            return
        known = self._rows[: len(self._maps), MT_ADDRESS].tolist()
        row = next((known.index(at) for at in (address, NOWHERE) if at in known), len(known))
        if row == ROOM:
            return
        self._maps[row:] = [tmap, *self._maps[row + 1 :]]
        self._rows[row, :MT_BYTES] = address, tmap.segment, address_in_host(map_words(tmap))
        self._rows[row, MT_BYTES:] = np.frombuffer(data.tobytes(), np.int64)
        self._control[bytecode.MAPS] = len(self._maps)

    def drop(self, address: int) -> None:
        """Forgets the map of an address, which is about to change."""
        rows = self._rows[: len(self._maps), MT_ADDRESS]
        rows[rows == address] = NOWHERE

    def known(self, address: int) -> TensorMap | None:
        """The map that was added for an address, if memory there still holds the same bytes; else None."""
        rows = self._rows[: len(self._maps)]
        row = next((i for i, at in enumerate(rows[:, MT_ADDRESS].tolist()) if at == address), None)
        data = self._memory.view(address, MAP_BYTES) if row is not None else None
        same = data is not None and data.tobytes() == rows[row, MT_BYTES:].tobytes()
        return self._maps[row] if same and row is not None else None

    def copies(self) -> list[tuple[bool, TensorMap, tuple[int, ...]]]:
        """(whether it stores, map, coordinates) of each copy by compiled code since the last call."""
        rows = self._copies[: self._control.item(bytecode.COPIES)].tolist()
        self._control[bytecode.COPIES] = 0
        found = [(bool(stores), self._maps[number], start) for stores, number, *start in rows]
        return [(stores, tmap, tuple(start[: tmap.rank])) for stores, tmap, start in found]
