"""A wrong tile of D and helpers to test what it holds, for the patterns (mismatch.py, k_parts.py)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

TILE = 128  # rows and columns of an output tile
K_TILE = 64  # columns of A and B that one K tile takes
SHARE = 0.98  # of the elements must agree for a pattern to fit
Found = tuple[str, str] | None  # a pattern: (advice, sentence), or None


@dataclass(frozen=True)
class Block:
    """The wrong rows and columns of one tile, with the matrices to compare them to, in float32."""

    tile: tuple[int, int]
    rows: np.ndarray  # of D, sorted
    columns: np.ndarray
    D: np.ndarray  # (rows, columns): what they hold
    R: np.ndarray  # (M, N): the whole right product
    A: np.ndarray  # (M, K)
    B: np.ndarray  # (N, K)
    tolerance: tuple[float, float]  # rtol, atol
    part: str = ""  # "rows 0-63", if the block is only a part of the tile's wrong elements

    @property
    def place(self) -> str:
        tile = f"tile ({self.tile[0]}, {self.tile[1]})"
        return f"the part of {tile} in {self.part}" if self.part else tile

    def cut(self, axis: int, count: int) -> list[Block]:
        """The block's non-empty parts in `count` equal ranges of rows (axis 0) or columns (1) of the tile."""
        numbers, width = (self.rows, self.columns)[axis], TILE // count
        first, parts = self.tile[axis] * TILE, []
        for start in range(first, first + TILE, width):
            mine = (numbers >= start) & (numbers < start + width)
            if mine.any():
                name = f"{('rows', 'columns')[axis]} {start}-{start + width - 1}"
                rows, columns = (mine, slice(None))[:: 1 - 2 * axis]
                D = self.D[rows][:, columns]
                part = replace(self, rows=self.rows[rows], columns=self.columns[columns], D=D, part=name)
                parts.append(part)
        return parts

    def agrees(self, candidate: np.ndarray, part: np.ndarray | None = None) -> bool:
        return share(self.D if part is None else part, candidate, self.tolerance) >= SHARE

    def of(self, matrix: np.ndarray) -> np.ndarray:
        """The block's part of an (M, N) matrix."""
        return matrix[np.ix_(self.rows, self.columns)]


def share(given: np.ndarray, candidate: np.ndarray, tolerance: tuple[float, float]) -> float:
    """Share of the elements that agree within the tolerance."""
    return float(near(given, candidate, tolerance).mean())


def near(given: np.ndarray, candidate: np.ndarray, tolerance: tuple[float, float]) -> np.ndarray:
    """Which elements agree, within twice the tolerance plus float16 rounding of the candidate."""
    rtol, atol = tolerance
    with np.errstate(invalid="ignore", over="ignore"):
        return np.abs(given - candidate) <= 2 * atol + (2 * rtol + 2**-10) * np.abs(candidate)


def products_of(block: Block, pairs: list[tuple[int, int]], width: int = K_TILE) -> np.ndarray:
    """(pairs, elements): A's K tile i times B's K tile j, for each pair; `width`: columns of a K tile."""
    a = block.A[block.rows].reshape(len(block.rows), -1, width)
    b = block.B[block.columns].reshape(len(block.columns), -1, width)
    return np.stack([(a[:, i] @ b[:, j].T).reshape(-1) for i, j in pairs])


def times_of(block: Block, products: np.ndarray) -> np.ndarray | None:
    """How often each product is in D, by least squares; None if D is not such a sum."""
    if not np.isfinite(block.D).all():
        return None
    gram, right = products @ products.T, products @ block.D.reshape(-1)
    solution = np.linalg.lstsq(gram, right, rcond=None)[0]
    times = np.rint(solution).astype(int)
    if np.abs(solution - times).max() > 0.05 or (times < 0).any():
        return None
    return times if block.agrees((times @ products).reshape(block.D.shape)) else None


def wrong_tiles(wrong: np.ndarray) -> np.ndarray:
    """(row, column) of each output tile that has a wrong element; (tiles, 2), row by row."""
    for axis, length in enumerate(wrong.shape):
        wrong = np.logical_or.reduceat(wrong, np.arange(0, length, TILE), axis)
    return np.argwhere(wrong)
