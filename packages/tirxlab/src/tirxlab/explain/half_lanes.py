"""Rows of NaN where an MMA of 64 rows has written only half of the lanes that are read.

Such an MMA puts its row r into lane 32 * (r // 16) + r % 16: the first 16 of each warp's 32 lanes.
"""

from __future__ import annotations

import numpy as np

from tirxlab.explain.blocks import SHARE, TILE, Block, Found, share
from tirxlab.explain.ranges import mapping

_WARP, _HALF = 32, 16  # lanes of a warp; how many of them hold rows of an MMA of 64 rows


def half_lanes(block: Block) -> Found:
    """All NaNs are in rows of the second half of a warp's lanes, and these rows hold nothing else."""
    rows = block.rows - block.tile[0] * TILE
    nan = np.isnan(block.D)
    bare = nan.mean(1) >= SHARE
    if not bare.any() or (rows[bare] % _WARP < _HALF).any() or (nan.any(1) != bare).any():
        return None
    text = f"{block.place} is NaN in rows {_HALF}-{_WARP - 1} of every {_WARP}"
    moved = _moved(block, rows, ~bare)
    if moved is None or set(rows[bare]) != {r for r in range(TILE) if r % _WARP >= _HALF}:
        return None
    advice = (
        "is the MMA one of 64 rows? It puts its row r into lane 32 * (r // 16) + r % 16, so that each warp "
        "has 16 of them: multiply 128 rows at a time, or read the lanes in that order"
    )
    return advice, f"{text}{moved}"


def _moved(block: Block, rows: np.ndarray, kept: np.ndarray) -> str | None:
    """`; rows 32-47 hold 16-31`, for the wrong rows that hold numbers; None if one equals no row."""
    if not kept.any():
        return ""
    first = block.tile[0] * TILE
    right = block.R[first : first + TILE, block.columns]
    source = [_row(line, right, block.tolerance) for line in block.D[kept]]
    if None in source:
        return None
    return f"; rows {mapping(rows[kept], np.array(source))}"


def _row(line: np.ndarray, right: np.ndarray, tolerance: tuple[float, float]) -> int | None:
    """The row of the tile that a line equals; None if none."""
    nearest = int(np.abs(right - line).sum(1).argmin())
    return nearest if share(line, right[nearest], tolerance) >= SHARE else None
