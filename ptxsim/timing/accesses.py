"""What an access of a warp costs a memory: cycles of the shared-memory port, sectors of global memory."""

from __future__ import annotations

import functools

import numpy as np

BANKS, WORD = 32, 4  # of shared memory
SECTOR, LINE = 32, 128  # bytes of global memory that travel, and that a cache names, together


def shared_passes(places: np.ndarray, sizes: np.ndarray) -> int:
    """Cycles of the port: lanes go in groups that could fill it once, each as often as its fullest bank asks.

    places: int64 (lanes,) addresses; sizes: bytes of each lane, all alike.
    """
    base = int(places[0]) & -BANKS * WORD
    return _passes((places - base).tobytes(), int(sizes[0]))


@functools.lru_cache(maxsize=4096)
def _passes(offsets: bytes, size: int) -> int:
    places = np.frombuffer(offsets, np.int64)
    group = max(1, BANKS * WORD // max(size, WORD))
    total = 0
    for first in range(0, len(places), group):
        starts = places[first : first + group] // WORD
        words = np.unique(starts[:, None] + np.arange(max(1, size // WORD))[None, :])
        total += int(np.bincount(words % BANKS).max())
    return total


def global_sectors(places: np.ndarray, sizes: np.ndarray) -> tuple[list[int], list[int]]:
    """(sectors, lines) that the lanes touch, each once."""
    first, last = places // SECTOR, (places + sizes - 1) // SECTOR
    sectors = np.unique(np.concatenate([first + i for i in range(int((last - first).max()) + 1)]))
    sectors = sectors[sectors <= int(last.max())]
    return sectors.tolist(), np.unique(sectors * SECTOR // LINE).tolist()
