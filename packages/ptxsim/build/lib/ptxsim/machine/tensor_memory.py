"""Tensor memory of one CTA (PTX ISA 9.7.16.1): 128 lanes x 512 columns of 32 bits, allocated by columns.

An address is lane << 16 | column. Allocation is in powers of two from 32; the first one gets column 0.
"""

from __future__ import annotations

import numpy as np

LANES, COLUMNS = 128, 512
POISON = 0xFFFF_DEAD  # a NaN: what was never written shows


class TensorMemory:
    def __init__(self):
        self.cells = np.zeros((LANES, COLUMNS), np.uint32)
        self.floats = self.cells.view(np.float32)
        self.owner = np.zeros(COLUMNS, np.int32)  # number of the allocation that holds a column, 0: free
        self.clear()

    def clear(self) -> None:
        """As it is when a CTA starts."""
        self.cells[:] = POISON
        self.owner[:] = 0
        self.sizes: dict[int, int] = {}  # first column -> columns
        self.permit = True  # tcgen05.relinquish_alloc_permit gives it up
        self._count = 0

    def allocate(self, columns: int) -> int | None:
        """First column of a new allocation, or None while no room is free."""
        for start in range(0, COLUMNS - columns + 1, 32):
            if self.fits(start, columns):
                self.take(start, columns)
                return start
        return None

    def fits(self, start: int, columns: int) -> bool:
        """True if columns [start, start + columns) exist and are free."""
        return start + columns <= COLUMNS and not self.owner[start : start + columns].any()

    def take(self, start: int, columns: int) -> None:
        """Allocates these columns, which are free."""
        self._count += 1
        self.owner[start : start + columns] = self._count
        self.sizes[start] = columns

    def free(self, start: int) -> None:
        columns = self.sizes.pop(start)
        self.owner[start : start + columns] = 0

    def allocated(self, start: int, columns: int) -> bool:
        """True if columns [start, start + columns) all belong to live allocations."""
        return start + columns <= COLUMNS and bool(self.owner[start : start + columns].all())

    def shortage(self, start: int, columns: int) -> tuple[str, str]:
        """(what is allocated, what to do) for an access to columns that one allocation holds in part.

        ("", "") where it is not that.
        """
        (first, size), *others = self.sizes.items() or [(0, 0)]
        if others or not first <= start < first + size:
            return "", ""
        enough = 1 << (start + columns - first - 1).bit_length()
        if enough > COLUMNS:
            return f"{size} columns are allocated", f"tensor memory has {COLUMNS} columns"
        return f"{size} columns are allocated", f"allocate {enough} columns or more (n_cols)"


def split_address(address: int) -> tuple[int, int]:
    """(lane, column) of a tensor memory address."""
    return (address >> 16) & 0xFFFF, address & 0xFFFF
