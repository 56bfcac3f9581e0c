"""Which cluster writes which tile of D, and in what order, by running the simulator, not from the text."""

from __future__ import annotations

import re

import numpy as np

from ptxsim.tracing import Timeline
from tirxlab.artifact import Artifact
from tirxlab.devices import sim

CELL = 128  # rows and columns of a cell of D
EMPTY = 0x7E5A  # a NaN that no product has
_BOX = re.compile(r"(\w+)\[(\d+):\d+, (\d+):\d+\]")


def owners(artifact: Artifact, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """For each 128x128 cell of D, the number of the first cluster that writes it; -1 if none does.

    `arrays` are the inputs by name. Runs the clusters of the grid one by one, without checks.
    """
    (out,) = artifact.outputs
    found = np.full([-(-extent // CELL) for extent in out.shape], -1)
    bits = np.full(out.shape, EMPTY, np.uint16)
    for number in range(np.prod(artifact.grid) // np.prod(artifact.cluster)):
        given = {**arrays, out.name: bits.view(np.float16)}
        sim.run(artifact, given, checks=False, clusters=1, first=number)
        written = bits != EMPTY
        found[(found < 0) & in_cells(written)] = number
        bits[written] = EMPTY
    return found


def in_cells(written: np.ndarray) -> np.ndarray:
    """For each cell, whether any of its elements is written."""
    starts = [range(0, extent, CELL) for extent in written.shape]
    return np.logical_or.reduceat(np.logical_or.reduceat(written, starts[0], 0), starts[1], 1)


def stored(timeline: Timeline, name: str) -> list[tuple[int, int]]:
    """Cells of the matrix `name` in the order in which the TMA stores of a recorded cluster begin."""
    stores = sorted((e for e in timeline.events if e.kind == "store"), key=lambda e: e.begin)
    boxes = [_BOX.fullmatch(event.box) for event in stores]
    cells = [(int(box[2]) // CELL, int(box[3]) // CELL) for box in boxes if box and box[1] == name]
    return list(dict.fromkeys(cells))
