"""Where D is wrong, in a few kilobytes: counts over cells of the matrix, and one cell element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

CELL = 128  # rows and columns of a cell; doubled until the matrix has at most MOST cells a side
MOST = 64  # cells down and across
ZOOM = 128  # rows and columns that are kept element by element


@dataclass
class MismatchMap:
    """Where D is wrong, as plain data. In `zoom` "0" is right, "1" wrong, "2" never written."""

    rows: int
    columns: int
    cell: int
    counts: list[list[int]]  # wrong elements of each cell
    unwritten: list[list[int]]  # those of them that were never written
    zoom_row: int  # of its first element in the matrix
    zoom_column: int
    zoom: list[str]  # a string for each row


def mismatch_map(wrong: np.ndarray, unwritten: np.ndarray) -> MismatchMap:
    """The map of `wrong` and `unwritten`, (M, N) bool; an unwritten element counts as wrong, too. `zoom` is
    around the first wrong element.
    """
    import numpy as np  # not needed by those who only read maps

    rows, columns = wrong.shape
    cell = CELL
    while max(rows, columns) > cell * MOST:
        cell *= 2
    down, across = -(-rows // cell), -(-columns // cell)

    def counted(elements: np.ndarray) -> list[list[int]]:
        padded = np.zeros((down * cell, across * cell), bool)
        padded[:rows, :columns] = elements
        lines = np.add.reduce(padded.reshape(down, cell, -1).view(np.uint8), 1, np.uint32)
        return lines.reshape(down, across, cell).sum(2).tolist()

    first_row, first_column = divmod(int(wrong.argmax()), columns)
    r, c = first_row // ZOOM * ZOOM, first_column // ZOOM * ZOOM
    part = (slice(r, r + ZOOM), slice(c, c + ZOOM))
    states = np.where(unwritten[part], 2, wrong[part].astype(int))
    zoom = ["".join(map(str, line)) for line in states.tolist()]
    return MismatchMap(rows, columns, cell, counted(wrong), counted(unwritten), r, c, zoom)
