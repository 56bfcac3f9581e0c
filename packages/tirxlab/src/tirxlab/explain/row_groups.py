"""Groups of 16 bytes that are permuted within each row of D, differently from row to row.

This happens if shared memory is written in one order and stored in another: an order made by hand (XOR,
rotation) that the layout does not have, or that is applied on top of the layout's own.
"""

from __future__ import annotations

import numpy as np

from tirxlab.explain.blocks import TILE, Block, Found
from tirxlab.explain.ranges import mapping

_GROUP = 8  # elements of 16 bits in 16 B
_PERIODS = (2, 4, 8, 16, 32)  # rows after which the orders repeat


def row_groups(block: Block) -> Found:
    """A permutation of the groups of each row that depends on the row modulo one of _PERIODS."""
    groups = block.columns[::_GROUP] // _GROUP
    if not np.array_equal(_columns(groups), block.columns):
        return None
    source = _sources(block, groups)
    if source is None or not (np.sort(source, 1) == groups).all():
        return None
    period = _period(block.rows, source, groups)
    if period is None:
        return None
    first = block.tile[1] * TILE
    moved = mapping(block.columns - first, _columns(source[0]) - first)
    advice = (
        "is Dsmem written and stored in the same layout? Does the code permute what the layout "
        "(tma_shared_layout) permutes already?"
    )
    return advice, (
        f"{block.place}: groups of 8 columns (16 bytes) change places within {_width(groups, source)} "
        f"columns of each row, differently in each row (mod {period}): "
        f"in row {block.rows[0] % TILE} columns {moved}"
    )


def _sources(block: Block, groups: np.ndarray) -> np.ndarray | None:
    """(rows, groups): the group of the product's same row that each group of D holds; None if none fits."""
    right = block.of(block.R).reshape(len(block.rows), -1, _GROUP)
    given = block.D.reshape(right.shape)
    with np.errstate(invalid="ignore"):
        nearest = np.abs(given[:, :, None] - right[:, None]).sum(3).argmin(2)
    held = np.take_along_axis(right, nearest[..., None], 1).reshape(block.D.shape)
    return groups[nearest] if block.agrees(held) else None


def _period(rows: np.ndarray, source: np.ndarray, groups: np.ndarray) -> int | None:
    """The period, one of _PERIODS, if it is seen twice (right rows count); None if all rows are alike."""
    orders = np.tile(groups, (rows[-1] - rows[0] + 1, 1))
    orders[rows - rows[0]] = source
    if (orders == orders[0]).all():
        return None
    number = np.arange(len(orders))
    seen = (p for p in _PERIODS if 2 * p <= len(orders) + 1)
    return next((p for p in seen if (orders == orders[number % p]).all()), None)


def _width(groups: np.ndarray, source: np.ndarray) -> int:
    """The smallest number of columns within which all groups stay."""
    width = 2
    while (source // width != groups // width).any():
        width *= 2
    return width * _GROUP


def _columns(groups: np.ndarray) -> np.ndarray:
    """The columns of these groups, side by side."""
    return (groups[:, None] * _GROUP + np.arange(_GROUP)).reshape(-1)
