"""What loads with row and column exchanged bring; zeros where they lie outside of the matrix."""

from __future__ import annotations

import numpy as np


def turned_tile(matrix: np.ndarray, number: int, rows: int, columns: int) -> np.ndarray:
    """Boxes of (rows, columns) from row k, column number * rows, for k = 0, columns, ..: (rows, K) float32.

    matrix (lines, K); the boxes are side by side, in place of the K tiles of tile `number`.
    """
    lines, K = matrix.shape
    padded = np.zeros((max(lines, K) + rows, max(K, (number + 1) * rows) + columns), np.float32)
    padded[:lines, :K] = matrix
    start = number * rows
    boxes = [padded[k : k + rows, start : start + columns] for k in range(0, K, columns)]
    return np.hstack(boxes)[:, :K]
