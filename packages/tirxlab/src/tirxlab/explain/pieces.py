"""Pieces of a few columns that belong to other rows and columns of the same tile.

This happens if threads, registers and addresses of a store do not agree on who holds what: for example, a
lane stores columns of many rows though its registers hold many columns of one row.
"""

from __future__ import annotations

import numpy as np

from tirxlab.explain.blocks import SHARE, TILE, Block, Found, near

_WIDTHS = (8, 4, 2)  # columns of a piece
_SHOWN = 3
_PROBES = 32


def pieces(block: Block) -> Found:
    """Every piece of the block is another piece of its tile, and no piece appears twice."""
    (row, column), width = (n * TILE for n in block.tile), min(TILE, block.R.shape[1])
    tile = block.R[row : row + TILE, column : column + width]
    if not np.isfinite(block.D).all():
        return None
    for size in _WIDTHS:
        starts = block.columns[::size]
        if width % size or len(block.columns) % size or (starts % size).any():
            continue
        if not np.array_equal((starts[:, None] + np.arange(size)).reshape(-1), block.columns):
            continue
        given, right = block.D.reshape(-1, size), tile.reshape(-1, size)
        probe = given[np.linspace(0, len(given) - 1, _PROBES).astype(int)]
        if near(probe, right[_nearest(probe, right)], block.tolerance).mean() < SHARE:
            continue
        nearest = np.concatenate([_nearest(part, right) for part in np.array_split(given, 16)])
        if near(given, right[nearest], block.tolerance).mean() < SHARE:
            continue
        if len(np.unique(nearest)) < SHARE * len(nearest):
            return None
        return _told(block, nearest, starts, size, width // size)
    return None


def _nearest(given: np.ndarray, right: np.ndarray) -> np.ndarray:
    """For each piece of `given`, the index of the closest piece of `right`."""
    return ((given**2).sum(1)[:, None] - 2 * given @ right.T + (right**2).sum(1)).argmin(1)


def _told(block: Block, nearest: np.ndarray, starts: np.ndarray, size: int, across: int) -> Found:
    top, left = (n * TILE for n in block.tile)
    rows, columns = top + nearest // across, left + nearest % across * size
    places = [(r, c) for r in block.rows.tolist() for c in starts.tolist()]
    moved = [
        f"D[{r}, {c}:{c + size}] holds what belongs to D[{s}, {d}:{d + size}]"
        for (r, c), s, d in zip(places, rows.tolist(), columns.tolist(), strict=True)
        if (r, c) != (s, d)
    ]
    advice = (
        "which row and which columns do the registers of a thread hold, and to which does it store them? "
        "Both must follow from the same ids"
    )
    return advice, f"{block.place}: pieces of {size} columns are in other places: {', '.join(moved[:_SHOWN])}"
