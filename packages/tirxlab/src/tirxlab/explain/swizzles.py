"""Which element of a tile is read in place of which, if shared memory is written and read in two layouts.

The layouts are those of `tma_shared_layout` (PTX ISA 5.5.7): a tile is cut into columns of 16, 32, 64 or
128 B, each a stack of rows; groups of 16 B are permuted by their row. A fifth layout is plain row-major, as
threads write without a layout. Pieces may also be rotated by hand.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

_GROUP = 8  # elements of 16 bits in 16 B
NAMES = ("SWIZZLE_NONE", "SWIZZLE_32B", "SWIZZLE_64B", "SWIZZLE_128B", "rows without a swizzle")


def places(layout: int, rows: int, columns: int) -> np.ndarray:
    """(rows, columns): the offset in elements at which a layout of NAMES puts each element of a tile."""
    width, bits = (columns, 0) if layout == len(NAMES) - 1 else (_GROUP << layout, layout)
    row, column = np.indices((rows, columns))
    linear = column // width * rows * width + row * width + column % width
    group = linear // _GROUP
    return (group ^ (group // 8 & (1 << bits) - 1)) * _GROUP + linear % _GROUP


@functools.cache
def exchanges(rows: int, columns: int) -> tuple[tuple[str, str, np.ndarray], ...]:
    """(written as, read as, flat index of the element read in place of each) for all pairs that differ.

    The last layout and SWIZZLE_128B come only once: both ways round exchange the same elements.
    """
    found = []
    for written, read in list(itertools.permutations(range(len(NAMES)), 2))[:-1]:
        holds = np.empty(rows * columns, int)
        holds[places(written, rows, columns).reshape(-1)] = np.arange(rows * columns)
        found.append((NAMES[written], NAMES[read], holds[places(read, rows, columns).reshape(-1)]))
    for way, by in (("further", 1), ("back", -1)):
        pieces = f"pieces of 16 B that go one {way} from row to row"
        found.append((pieces, "pieces in their places", rotated(rows, columns, by)))
    return tuple(found)


def rotated(rows: int, columns: int, by: int) -> np.ndarray:
    """The flat index of the element in place of each, if each row is rotated by `by` pieces more than the row
    before it.
    """
    row, column = np.indices((rows, columns))
    group = (column // _GROUP - by * row) % (columns // _GROUP)
    return (row * columns + group * _GROUP + column % _GROUP).reshape(-1)
