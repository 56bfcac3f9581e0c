"""Costs of a warp's memory access: cycles of the shared-memory port, sectors of global memory."""

from __future__ import annotations

import functools

import numpy as np

BANKS, WORD = 32, 4  # of shared memory
SECTOR, LINE = 32, 128  # bytes of global memory: of a transfer, of a cache line
HALF = 16  # bytes of half a sector, which is the most that a lane of a cp.async copies


def shared_passes(places: np.ndarray, sizes: np.ndarray) -> int:
    """Cycles of the port. Lanes are served in groups that can fill the port once; a group takes as many
    cycles as its fullest bank has words.

    Two groups that read the same words are served together: a broadcast of 16 bytes takes two passes (ncu).

    places: int64 (lanes,) addresses; sizes: bytes per lane, all equal.
    """
    base = int(places[0]) & -BANKS * WORD
    return _passes((places - base).tobytes(), int(sizes[0]))


@functools.lru_cache(maxsize=4096)
def _passes(offsets: bytes, size: int) -> int:
    places = np.frombuffer(offsets, np.int64)
    group = max(1, BANKS * WORD // max(size, WORD))
    groups = [places[first : first + group] for first in range(0, len(places), group)]
    if size <= WORD:
        return sum(_fullest(one, size) for one in groups)
    pairs = [(groups[i], np.concatenate(groups[i : i + 2])) for i in range(0, len(groups), 2)]
    return sum(
        1 if _fullest(both, size) == 1 else _fullest(one, size) + _fullest(both[len(one) :], size)
        for one, both in pairs
    )


def _fullest(places: np.ndarray, size: int) -> int:
    """The largest number of words that these lanes access in one bank; 0 without lanes."""
    words = np.unique(places[:, None] // WORD + np.arange(max(1, size // WORD))[None, :])
    return int(np.bincount(words % BANKS).max()) if len(words) else 0


def copied(sources: np.ndarray, targets: np.ndarray) -> tuple[int, int, int]:
    """(sectors that come from L2, how many of them are parted, passes through the load unit) of a cp.async,
    given the addresses of its lanes.

    Measured on the H200 (ports.cu, and the counters of ncu): a sector whose two halves go to different 32
    bytes of shared memory is transferred twice. A line of such sectors takes one pass for each half; a line
    of other sectors takes one pass.
    """
    chunks = np.unique(np.stack([sources, targets]) // HALF, axis=1)  # of up to 16 bytes
    pieces = np.unique(chunks // 2, axis=1)
    alone = [dict(zip(*_counted(row), strict=True)) for row in pieces]  # sector, 32 bytes -> pieces
    parted = [alone[0][a] > 1 or alone[1][b] > 1 for a, b in (chunks // 2).T.tolist()]
    sides = np.array(parted) * (1 + chunks[0] % 2)
    passes = np.unique(np.stack([chunks[0] * HALF // LINE, sides]), axis=1).shape[1]
    return pieces.shape[1], sum(parted), passes


def parted_rows(address: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Bytes that TMA transfers in parted sectors of a box: 32 for each 16, in rows that start in mid-sector.

    sizes: of the box: bytes of a row, then rows along each further axis; strides: of these axes, in bytes.
    Measured on the H200 (memory.cu): a box whose rows start at odd multiples of 16 bytes takes L2 as long as
    a cp.async of such rows does.
    """
    starts = np.array([address])
    for count, stride in zip(sizes[1:], strides, strict=True):
        starts = (starts[:, None] + stride * np.arange(count)).ravel()
    return 2 * sizes[0] * int((starts % SECTOR >= HALF).sum())


def _counted(values: np.ndarray) -> list[list[int]]:
    return [found.tolist() for found in np.unique(values, return_counts=True)]


def scattered(places: np.ndarray) -> bool:
    """Whether the addresses of the lanes follow no pattern: a gather."""
    return len(places) > 8 and len(np.unique(np.diff(places))) > len(places) // 4


def global_sectors(places: np.ndarray, sizes: np.ndarray) -> tuple[list[int], list[int]]:
    """(sectors, lines) that the lanes touch, without duplicates."""
    first, last = places // SECTOR, (places + sizes - 1) // SECTOR
    sectors = np.unique(np.concatenate([first + i for i in range(int((last - first).max()) + 1)]))
    sectors = sectors[sectors <= int(last.max())]
    return sectors.tolist(), np.unique(sectors * SECTOR // LINE).tolist()
