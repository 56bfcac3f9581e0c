"""Which element of a tile is read where shared memory is written in one layout and read in another.

The layouts are those of `tma_shared_layout` (PTX ISA 5.5.7): a tile is cut into columns of 16, 32, 64 or
128 B, each a stack of rows; groups of 16 B change places by their row. A fifth keeps whole rows, one after
the other, as threads write them that know of no layout. Pieces may be rotated by hand, too.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

_GROUP = 8  # elements of 16 bits in 16 B
NAMES = ("SWIZZLE_NONE", "SWIZZLE_32B", "SWIZZLE_64B", "SWIZZLE_128B", "rows without a swizzle")


def places(layout: int, rows: int, columns: int) -> np.ndarray:
    """(rows, columns): where in shared memory, in elements, a layout of NAMES puts each element of a tile."""
    width, bits = (columns, 0) if layout == len(NAMES) - 1 else (_GROUP << layout, layout)
    row, column = np.indices((rows, columns))
    linear = column // width * rows * width + row * width + column % width
    group = linear // _GROUP
    return (group ^ (group // 8 & (1 << bits) - 1)) * _GROUP + linear % _GROUP


@functools.cache
def exchanges(rows: int, columns: int) -> tuple[tuple[str, str, np.ndarray], ...]:
    """(written as, read as, which element (flat) is read in the place of each) of all pairs that differ.

    The last layout and SWIZZLE_128B come once: they exchange the same elements either way round.
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
    """Which element (flat) stands in the place of each where each row is rotated by `by` pieces more than the
    one before it.
    """
    row, column = np.indices((rows, columns))
    group = (column // _GROUP - by * row) % (columns // _GROUP)
    return (row * columns + group * _GROUP + column % _GROUP).reshape(-1)
