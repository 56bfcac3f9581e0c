"""Only one row in 32 is right: one lane did its row, though each lane must do its own."""

from __future__ import annotations

import numpy as np

from tirxlab.explain.blocks import SHARE, TILE, Block, Found

_WARP = 32  # lanes; rows of tensor memory that one warp reads


def one_lane(block: Block) -> Found:
    """Only the rows of one lane of each warp, or of one thread, are right; all others are NaN, or 0."""
    if max(np.isnan(block.D).mean(), (block.D == 0).mean()) < SHARE:
        return None
    rows = np.arange(min(TILE, block.R.shape[0] - block.tile[0] * TILE))
    right = np.setdiff1d(rows, block.rows - block.tile[0] * TILE)
    lanes = np.unique(right % _WARP)
    if len(rows) < TILE or len(lanes) != 1 or len(right) not in (1, TILE // _WARP):
        return None
    whose = "one lane of each warp" if len(right) > 1 else "one thread"
    which = f"rows {', '.join(map(str, right))} are" if len(right) > 1 else f"row {right[0]} is"
    advice = (
        "each thread reads, casts and copies its own row: is a part of that under elect_sync, or under a "
        "test of lane_id or warp_id, though all threads store the result?"
    )
    return advice, f"tile {block.tile}: only {which} right, of {whose}"
