"""Compact storage for the arrays of a saved launch.

Numbers that only feed a kernel need no storage: the names of kernel and array seed them, and index.json says
which are drawn, and how (again.py). Data that ptxsim leaves as the chip did, bit for bit, is kept as one
checksum for every BLOCK bytes (checksums.py). Of a large array whose last bits differ, one number in EVERY is
kept: an odd step, so that every row and column of a tile has some.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import ml_dtypes
import numpy as np

VALUES = np.array([-1.0, -0.5, 0.5, 2.0])
SCALES = {"int8": 2}  # factor of VALUES for types without halves
BLOCK = 1024  # bytes per checksum
LARGE, EVERY = 8192, 21  # bytes; one number in so many
SHOWN = 8  # numbers of a block that differs

Random = np.random.RandomState  # NumPy keeps its streams stable across versions


def bell(random: Random, count: int) -> np.ndarray:
    """Nearly normal numbers, mean 0, variance 1, from additions alone, so that no library's logarithm
    matters.
    """
    return sum(random.random_sample((12, count))) - 6


KINDS: dict[str, Callable[[Random, int], np.ndarray]] = {
    "four values": lambda random, count: random.choice(VALUES, count),
    "bell": bell,
    "positive": lambda random, count: np.abs(bell(random, count)),
    "ascending": lambda random, count: np.sort(bell(random, count)),
}


def numpy_type(name: str) -> np.dtype:
    """The NumPy type of PyTorch's type name; a bool is its byte."""
    return np.dtype(getattr(ml_dtypes, name, None) or {"bool": "uint8"}.get(name, name))


def drawn(kernel: str, array: int, dtype: str, nbytes: int, kind: str) -> np.ndarray:
    """The bytes of an array of one of KINDS: the same for the same kernel and array on every machine."""
    random = Random(zlib.crc32(f"{kernel} {array}".encode()))
    numbers = KINDS[kind](random, nbytes // numpy_type(dtype).itemsize) * SCALES.get(dtype, 1)
    return numbers.astype(numpy_type(dtype)).view(np.uint8)


def sampled(data: np.ndarray) -> np.ndarray:
    """One number in EVERY of an array with the type of its numbers."""
    return np.ascontiguousarray(data[::EVERY])


def checksums(data: np.ndarray) -> np.ndarray:
    """A checksum of every BLOCK bytes: shape (blocks,), uint32."""
    plain = data.tobytes()
    return np.array([zlib.crc32(plain[at : at + BLOCK]) for at in range(0, len(plain), BLOCK)], np.uint32)


def blocks_that_differ(chip: np.ndarray, ours: np.ndarray) -> str:
    """How an array differs from the checksums of the chip's; "" if it does not."""
    wrong = np.flatnonzero(chip != checksums(ours))
    if not wrong.size:
        return ""
    first = int(wrong[0]) * BLOCK // ours.itemsize
    numbers = ours[first : first + SHOWN]
    blocks = f"{wrong.size} of {chip.size} blocks of {BLOCK} bytes differ in {ours.dtype.name}"
    return f"{blocks}, the first at {first}, which ptxsim leaves as {numbers} .."
