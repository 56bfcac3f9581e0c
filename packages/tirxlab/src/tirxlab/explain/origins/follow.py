"""Runs a kernel once more and follows one of the elements that it gets wrong."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from tirxlab.explain.blocks import TILE, wrong_tiles

if TYPE_CHECKING:
    from tirxlab.artifact import Artifact

_TILES = 6  # in how many wrong tiles an element is followed
_MOST = 1 << 31  # most multiply-adds of a run that is repeated


def follow(
    artifact: Artifact, A: np.ndarray, B: np.ndarray, wrong: np.ndarray, order: str | int
) -> list[str]:
    """Lines that say how a wrong element of D came about on the simulator; none if that is not known.

    A (M, K), B (N, K) and wrong (M, N), which elements of D were written wrong: numpy arrays. `order`: that
    of the wrong run.
    """
    import ptxsim
    from tirxlab.devices import sim
    from tirxlab.explain.origins.record import Origins
    from tirxlab.explain.origins.words import told

    if not wrong.any() or wrong.size * A.shape[1] > _MOST or A.dtype.itemsize != 2 or A.shape[1] % 8:
        return []
    a, b, d = (buffer.name for buffer in artifact.buffers)
    record = functools.partial(Origins, names=(a, b, d), matrices=(A, B), elements=_elements(wrong))
    arrays = {a: A.copy(), b: B.copy(), d: np.zeros(wrong.shape, A.dtype)}
    try:
        seen = sim.run(artifact, arrays, order=order, checks=False, trace=record).trace
    except ptxsim.Fault:
        return []
    return next((lines for element in seen.followed if (lines := told(seen, element))), [])


def _elements(wrong: np.ndarray) -> list[tuple[int, int]]:
    """The first wrong element of each of a few wrong tiles."""
    found = []
    for r, c in (wrong_tiles(wrong)[:_TILES] * TILE).tolist():
        rows, columns = np.nonzero(wrong[r : r + TILE, c : c + TILE])
        found.append((r + int(rows[0]), c + int(columns[0])))
    return found
