"""Device memory of a program under `exec`: one sparse file that the simulator and the program both map."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass

import numpy as np

BASE = 0x7200_0000_0000  # address of device memory in kernels and in the program
_STEP = 1 << 16  # allocations start at multiples of this, with a gap of at least this size between them
_KINDS = {1: "cudaMallocHost", 2: "cudaMalloc", 3: "cudaMallocManaged", 4: "variable"}


@dataclass
class Allocation:
    address: int
    size: int
    name: str
    array: np.ndarray  # uint8


class Arena:
    def __init__(self, size: int):
        """size: bytes of device memory; the host provides a page when it is first touched."""
        self.size = size
        self.file = os.memfd_create("ptxsim-arena", 0)
        os.truncate(self.file, 2 * size)  # with room for the gaps
        self._mapping = mmap.mmap(self.file, 2 * size)
        self._bytes = np.frombuffer(self._mapping, np.uint8)
        self._free: dict[int, list[int]] = {}  # bytes reserved for an allocation -> addresses of free ones
        self._next, self.used, self.made = BASE, 0, 0
        self.live: dict[int, Allocation] = {}
        self.freed: dict[int, Allocation] = {}

    @property
    def path(self) -> str:
        """The path under which the program opens the file."""
        return f"/proc/{os.getpid()}/fd/{self.file}"

    def allocate(self, size: int, kind: int = 2, name: str = "") -> int | None:
        """Allocates `size` bytes and returns their address, or None if the device is out of memory."""
        if not 0 < size <= self.size - self.used:
            return None
        room = -(-size // _STEP) * _STEP + _STEP
        if self._free.get(room):
            address = self._free[room].pop()
        elif self._next + room <= BASE + 2 * self.size:
            address, self._next = self._next, self._next + room
        else:
            return None
        self.made, self.used = self.made + 1, self.used + size
        self.freed.pop(address, None)
        name = name or f"{_KINDS.get(kind, 'memory')} #{self.made} ({size} B)"
        self.live[address] = Allocation(address, size, name, self.view(address, size))
        return address

    def release(self, address: int) -> bool:
        """Frees an allocation; returns whether there was one at this address."""
        known = self.live.pop(address, None)
        if known is None:
            return False
        self.used -= known.size
        self.freed[address] = known
        room = -(-known.size // _STEP) * _STEP + _STEP
        self._free.setdefault(room, []).append(address)
        if known.size >= _STEP:
            self._mapping.madvise(mmap.MADV_REMOVE, address - BASE, known.size // 4096 * 4096)
        return True

    def view(self, address: int, size: int) -> np.ndarray:
        return self._bytes[address - BASE : address - BASE + size]

    def covers(self, address: int) -> bool:
        """Whether an address is of device memory, allocated or not. The program maps all of it, too."""
        return BASE <= address < BASE + 2 * self.size

    def was_at(self, address: int) -> Allocation | None:
        """The freed allocation that an address lies in."""
        freed = self.freed.values()
        return next((it for it in freed if it.address <= address < it.address + it.size), None)

    def memory(self) -> dict[int, tuple[str, np.ndarray]]:
        """The memory that a launch can access: address -> (name, array)."""
        return {a: (it.name, it.array) for a, it in self.live.items()}
