"""Identifies which part of A or B a piece of 16 bytes is, by its contents, whatever way it took."""

from __future__ import annotations

import numpy as np

CHUNK = 16  # bytes
NOTHING = -1  # code of a chunk that is in neither matrix
_ROW, _MATRIX = 20, 40  # first bit of the row and of the matrix in a code; the chunk starts at bit 0
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)


class Chunks:
    """The chunks of matrices; of equal chunks only the first is found."""

    def __init__(self, *matrices: np.ndarray):
        """`matrices` (rows, K): row-major, of one dtype, K a multiple of the elements in 16 bytes."""
        self.dtype = matrices[0].dtype
        hashes = [_hashes(matrix) for matrix in matrices]
        codes = [_codes(number, *of.shape) for number, of in enumerate(hashes)]
        self.hashes, first = np.unique(np.concatenate([of.ravel() for of in hashes]), return_index=True)
        self.codes = np.concatenate([code.ravel() for code in codes])[first]

    def of(self, values: np.ndarray) -> np.ndarray:
        """int64 (rows, K / elements of a chunk): the code of each chunk of float32 `values` (rows, K)."""
        with np.errstate(over="ignore", invalid="ignore"):
            hashes = _hashes(values.astype(self.dtype))
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[at] == hashes, self.codes[at], NOTHING)


def place(code: int) -> tuple[int, int, int] | None:
    """(matrix, row, chunk of the row) of a code; None for NOTHING."""
    if code == NOTHING:
        return None
    return code >> _MATRIX, code >> _ROW & (1 << _ROW) - 1, code & (1 << _ROW) - 1


def row_codes(matrix: int, row: int, count: int) -> np.ndarray:
    """The codes of a row's chunks, in order."""
    return (matrix << _MATRIX) + (row << _ROW) + np.arange(count, dtype=np.int64)


def _codes(matrix: int, rows: int, chunks: int) -> np.ndarray:
    row, chunk = np.ogrid[:rows, :chunks]
    return (matrix << _MATRIX) + (row.astype(np.int64) << _ROW) + chunk


def _hashes(matrix: np.ndarray) -> np.ndarray:
    """uint64 (rows, chunks): a hash of each chunk."""
    words = np.ascontiguousarray(matrix).view(np.uint64).reshape(len(matrix), -1, 2)
    mixed = words[..., 0] * _MIX
    return (mixed ^ mixed >> np.uint64(29)) + words[..., 1] * (_MIX ^ np.uint64(0xABCD))
