"""Tensor memory of one CTA (PTX ISA 9.7.16.1): 128 lanes x 512 columns of 32 bits, allocated by columns.

An address is lane << 16 | column. Allocation sizes are powers of two from 32; the first one gets column 0.
With `neighbours`, another CTA of the same kernel on the same SM always allocates first, and as many columns.
"""

from __future__ import annotations

import numpy as np

from ptxsim.jit.host import address_in_host

LANES, COLUMNS = 128, 512
NEIGHBOUR = -1  # owner of columns that another CTA holds
ANY_BASE = (
    "take the address that tcgen05.alloc has written (allocated_addr=tmem_addr[0]): it need not be column 0, "
    "as two CTAs of this kernel fit on one SM"
)
PAST_THE_END = "these columns begin past the end of the allocation: is the index of a column too large?"
OWN_ADDRESS = (
    "these columns lie outside: does each allocation have its own address word, and does this access count "
    "from its own allocation's first column?"
)
NO_COLUMN = (
    "is this the address of the word that tcgen05.alloc has written, not what it holds? Or is it counted in "
    "bytes?"
)
NEVER_WRITTEN = 0xFFFF_FFFF  # an address word in shared memory that nothing has written since the CTA began
POISON = 0xFFFF_DEAD  # a NaN, so that reads of unwritten cells show


class TensorMemory:
    def __init__(self):
        self.neighbours = False  # set for each launch
        self.cells = np.zeros((LANES, COLUMNS), np.uint32)
        self.floats = self.cells.view(np.float32)
        self.owner = np.zeros(COLUMNS, np.int32)  # number of the allocation that holds a column, 0: free
        self.clear()

    def clear(self) -> None:
        """Resets everything to the state at the start of a CTA."""
        self.cells[:] = POISON
        self.owner[:] = 0
        self.sizes: dict[int, int] = {}  # first column -> columns
        self._known: dict[tuple[int, int], bool] = {}  # answers of `allocated` since the last change
        self.permit = True  # tcgen05.relinquish_alloc_permit gives it up
        self._count = 0

    def addresses(self) -> tuple[int, int]:
        """Host addresses of `cells` and `owner`, in the order of bytecode.TmemColumn."""
        return address_in_host(self.cells), address_in_host(self.owner)

    def allocate(self, columns: int) -> int | None:
        """Allocates columns and returns the first one, or None if there is no room."""
        start = self.first_free(columns)
        if start is not None:
            self.take(start, columns)
        return start

    def first_free(self, columns: int) -> int | None:
        """The first column for an allocation, or None. The neighbour takes its columns first; if then there
        is no room, it gives them back.
        """
        start = self._gap(columns)
        if start is None:
            self.owner[self.owner == NEIGHBOUR] = 0
            return self._gap(columns)
        if self.neighbours:
            self.owner[start : start + columns] = NEIGHBOUR
            beyond = self._gap(columns)
            if beyond is None:
                self.owner[start : start + columns] = 0
                return start
            return beyond
        return start

    def _gap(self, columns: int) -> int | None:
        starts = range(0, COLUMNS - columns + 1, 32)
        return next((start for start in starts if self.fits(start, columns)), None)

    def fits(self, start: int, columns: int) -> bool:
        """Whether columns [start, start + columns) exist and are free."""
        return start + columns <= COLUMNS and not self.owner[start : start + columns].any()

    def take(self, start: int, columns: int) -> None:
        """Allocates these columns, which must be free."""
        self._count += 1
        self._known.clear()
        self.owner[start : start + columns] = self._count
        self.sizes[start] = columns

    def free(self, start: int) -> None:
        columns = self.sizes.pop(start)
        self._known.clear()
        self.owner[start : start + columns] = 0

    def allocated(self, start: int, columns: int) -> bool:
        """Whether columns [start, start + columns) all belong to live allocations."""
        known = self._known.get((start, columns))
        if known is None:
            known = start + columns <= COLUMNS and bool((self.owner[start : start + columns] > 0).all())
            self._known[start, columns] = known
        return known

    def shortage(self, start: int, columns: int) -> tuple[str, str]:
        """(what is allocated, what to do) for an access to columns that are not all allocated.

        ("", "") if the allocations do not explain the access.
        """
        if start >= 2 * COLUMNS:
            return f"tensor memory has columns 0 to {COLUMNS - 1}", NO_COLUMN
        (first, size), *others = self.sizes.items() or [(0, 0)]
        if (self.owner[start : start + columns] == NEIGHBOUR).any():
            what = f"alloc returned column {first}: these belong to another CTA of the same SM"
            return what, ANY_BASE
        if others:
            held = " and ".join(f"{at} to {at + many - 1}" for at, many in sorted(self.sizes.items()))
            return f"the {len(self.sizes)} allocs hold only columns {held}", OWN_ADDRESS
        if not size or start < first:
            return "", ""
        enough = 1 << (start + columns - first - 1).bit_length()
        behind = start >= first + size
        what = f"only columns {first} to {first + size - 1}" if behind else f"only {size} columns"
        if enough > COLUMNS:
            larger = PAST_THE_END if behind else f"tensor memory has {COLUMNS} columns"
            return f"{what} are allocated", larger
        more = f"allocate {enough} columns or more (n_cols)"
        return f"{what} are allocated", f"{more}; or is the index of a column too large?" if behind else more


def split_address(address: int) -> tuple[int, int]:
    """(lane, column) of a tensor memory address."""
    return (address >> 16) & 0xFFFF, address & 0xFFFF
