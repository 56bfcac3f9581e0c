"""Which cluster writes which tile of D: asked of the simulator, not computed from the kernel's text."""

from __future__ import annotations

import numpy as np

from tirxlab.artifact import Artifact
from tirxlab.devices import sim

CELL = 128  # rows and columns of D that are told apart
EMPTY = 0x7E5A  # a NaN that no product has


def owners(artifact: Artifact, arrays: dict[str, np.ndarray], clusters: int) -> np.ndarray:
    """Per 128x128 cell of D the number of the cluster that writes it; -1 for those of later clusters.

    `arrays` are the inputs by name. Runs the first 1, 2, .. `clusters` clusters: what each run adds
    belongs to its last cluster.
    """
    (out,) = artifact.outputs
    rows, columns = (-(-extent // CELL) for extent in out.shape)
    found = np.full((rows, columns), -1)
    for count in range(1, clusters + 1):
        D = np.full(out.shape, EMPTY, np.uint16).view(np.float16)
        sim.run(artifact, {**arrays, out.name: D}, checks=False, clusters=count)
        written = D.view(np.uint16) != EMPTY
        for row in range(rows):
            for column in range(columns):
                cell = written[row * CELL : (row + 1) * CELL, column * CELL : (column + 1) * CELL]
                if found[row, column] < 0 and cell.any():
                    found[row, column] = count - 1
    return found
