"""What a unit tells of its work: typed records that never change, made by the unit that knows.

Listeners read them and decode no instruction. A footprint is made once for each way that an instruction goes,
and is then the same object: its identity stands for all that it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np


class Rectangle(NamedTuple):
    """Cells of the tensor memory of a CTA. It may pass the last lane or column, which the unit reports."""

    rank: int  # of the CTA in its cluster
    lane: int
    lanes: int
    column: int
    columns: int

    @property
    def block(self) -> tuple:
        """Its index in an array (CTAs, lanes, columns)."""
        lanes = slice(self.lane, self.lane + self.lanes)
        return self.rank, lanes, slice(self.column, self.column + self.columns)


def rectangles(rank: int, lanes: np.ndarray, column: int, columns: int) -> list[Rectangle]:
    """Columns of these lanes, as few rectangles as there are runs of lanes."""
    runs = np.split(lanes, np.flatnonzero(np.diff(lanes) != 1) + 1)
    return [Rectangle(rank, int(run[0]), len(run), column, columns) for run in runs]


@dataclass(frozen=True, slots=True, eq=False)
class SharedSpan:
    """Chunks of 16 bytes of the shared memory of a CTA, by number."""

    rank: int
    chunks: np.ndarray  # int64, of any shape
    first: int  # byte of the window
    last: int

    @classmethod
    def of(cls, rank: int, chunks: np.ndarray) -> SharedSpan:
        return cls(rank, chunks, int(chunks.min()) * 16, int(chunks.max()) * 16 + 15)


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """What one instruction of a tensor core touches, with these operands."""

    ranks: tuple[int, ...]  # CTAs that take part
    reads: tuple[SharedSpan, ...] = ()
    cells_read: tuple[Rectangle, ...] = ()
    cells_written: tuple[Rectangle, ...] = ()
    tile: tuple[int, int] | None = None  # rows and columns of the product in all CTAs; None: it moves data
    descriptors: tuple[int, ...] = ()  # matrix descriptors of a product's operands
    label: str = ""  # in a timeline


class TensorWork(Protocol):
    """An instruction that a tensor core executes in order with the others of its thread (PTX ISA 9.7.16.6.2).

    A unit's own record of what it issued is one, and never changes.
    """

    name: str  # "tcgen05.mma"
    text: str  # "an MMA"
    where: object  # Location: agent and place
    group: int  # of .cta_group
    accumulates: bool  # adds to what its cells hold
    partial: bool  # leaves out some lanes
    footprint: Footprint
