"""K tiles of one product that were multiplied with different rows of an operand: its load's rows vary."""

from __future__ import annotations

import numpy as np

from tirxlab.explain.blocks import K_TILE, TILE, Block, Found, times_of

_MOST = 128  # most products that are told apart


def other_rows(block: Block) -> Found:
    """Each K tile once, but some with the rows of another tile of A, or of B."""
    for name in ("B", "A"):
        found = _of_operand(block, name)
        if found is not None:
            return found
    return None


def _of_operand(block: Block, name: str) -> Found:
    axis = 1 if name == "B" else 0
    matrix, lines = (block.B, block.columns) if axis else (block.A, block.rows)
    own, count, tiles = block.tile[axis], block.A.shape[1] // K_TILE, len(matrix) // TILE
    unknown = count * tiles
    if block.A.shape[1] % K_TILE or count < 2 or tiles < 2 or unknown > _MOST or block.D.size < 8 * unknown:
        return None
    times = times_of(block, _products(block, matrix, lines - own * TILE, tiles, axis))
    if times is None:
        return None
    used = times.reshape(tiles, count)
    taken = used.argmax(0)  # by each K tile
    if (used.sum(0) != 1).any() or (used < 0).any() or len(set(taken.tolist())) < 2:
        return None
    return _told(block, name, own, taken)


def _products(block: Block, matrix: np.ndarray, lines: np.ndarray, tiles: int, axis: int) -> np.ndarray:
    """(tiles * K tiles, elements): each K tile with the rows of each tile of one operand."""
    other = block.A[block.rows] if axis else block.B[block.columns]
    other = other.reshape(len(other), -1, K_TILE).swapaxes(0, 1)
    found = []
    for tile in range(tiles):
        mine = matrix[tile * TILE + lines].reshape(len(lines), -1, K_TILE).swapaxes(0, 1)
        a, b = (other, mine) if axis else (mine, other)
        found.append((a @ b.swapaxes(1, 2)).reshape(len(a), -1))
    return np.concatenate(found)


def _told(block: Block, name: str, own: int, taken: np.ndarray) -> Found:
    odd = next(tile for tile in taken.tolist() if tile != own)
    which = np.flatnonzero(taken == odd).tolist()
    shown = ", ".join(map(str, which[:4])) + (", .." if len(which) > 4 else "")
    rows = f"rows {odd * TILE}-{odd * TILE + TILE - 1} of {name}"
    start = "n_st" if name == "B" else "m_st"
    text = (
        f"{block.place} has K tile{'s' * (len(which) > 1)} {shown} (of {len(taken)}) multiplied with {rows}, "
        "and others not"
    )
    advice = (
        f"all K tiles of a tile take the same rows of {name}: does the row of its load ({start}) follow the "
        "K tile, the stage or the CTA? Or does a stage still hold what another tile loaded?"
    )
    return advice, text
