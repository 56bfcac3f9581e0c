"""Arrays of a saved launch in less room: `python -m research.chip.compact ARCHIVE OUT`.

Numbers that only feed a kernel need no room: the names of kernel and array seed them, and index.json says
which are drawn, and how. An array that ptxsim leaves as the chip did, bit for bit and in both orders, is kept
as one checksum for every BLOCK bytes. The command writes those; again.py draws.
"""

from __future__ import annotations

import argparse
import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np

VALUES = np.array([-1.0, -0.5, 0.5, 2.0])
SCALES = {"int8": 2}  # of VALUES, where halves are no numbers
BLOCK = 128  # bytes that share a checksum
SMALLEST = 1024  # bytes of an array that is kept as checksums

Random = np.random.RandomState  # NumPy never changes what a seed of it gives


def bell(random: Random, count: int) -> np.ndarray:
    """Nearly normal, mean 0, variance 1, of additions alone: no library's logarithm decides a bit."""
    return sum(random.random_sample((12, count))) - 6


KINDS: dict[str, Callable[[Random, int], np.ndarray]] = {
    "four values": lambda random, count: random.choice(VALUES, count),
    "bell": bell,
    "positive": lambda random, count: np.abs(bell(random, count)),
    "ascending": lambda random, count: np.sort(bell(random, count)),
}


def numpy_type(name: str) -> np.dtype:
    """Of PyTorch's name of a type; a bool is its byte."""
    return np.dtype(getattr(ml_dtypes, name, None) or {"bool": "uint8"}.get(name, name))


def drawn(kernel: str, array: int, dtype: str, nbytes: int, kind: str) -> np.ndarray:
    """The bytes of an array of KINDS: the same for the same kernel and array on every machine."""
    random = Random(zlib.crc32(f"{kernel} {array}".encode()))
    numbers = KINDS[kind](random, nbytes // numpy_type(dtype).itemsize) * SCALES.get(dtype, 1)
    return numbers.astype(numpy_type(dtype)).view(np.uint8)


def checksums(data: np.ndarray) -> np.ndarray:
    """Of every BLOCK bytes: shape (blocks,), uint32."""
    plain = data.tobytes()
    return np.array([zlib.crc32(plain[at : at + BLOCK]) for at in range(0, len(plain), BLOCK)], np.uint32)


def blocks_that_differ(chip: np.ndarray, ours: np.ndarray) -> str:
    """What differs between checksums of the chip's and an array; "" if nothing does."""
    wrong = np.flatnonzero(chip != checksums(ours))
    if not wrong.size:
        return ""
    first = int(wrong[0]) * BLOCK // ours.itemsize
    numbers = ours[first : first + BLOCK // ours.itemsize]
    blocks = f"{wrong.size} of {chip.size} blocks of {BLOCK} bytes differ in {ours.dtype.name}"
    return f"{blocks}, the first at {first}, which ptxsim leaves as {numbers}"


def with_checksums(archive: Path) -> dict[str, bytes]:
    """The files of an archive; what all runs of ptxsim leave bit for bit as the chip did is checksums."""
    from research.chip import replay

    files = replay.files_of(archive)
    for name in json.loads(files["index.json"])["kernels"]:
        data = dict(np.load(io.BytesIO(files[f"{name}.npz"])))
        large = {int(key[3:]) for key in data if key.startswith("out") and data[key].size >= SMALLEST}
        for one in replay.load_caught(archive, name) if large else ():
            if one.name.removesuffix(f".{replay.BLACKWELL}") == name:
                for order in replay.ORDERS:
                    _, left = one.launch(order)
                    large &= {n for n in large if (left[n].view(np.uint8) == data[f"out{n}"]).all()}
        for number in large:
            data[f"sums{number}"] = checksums(data.pop(f"out{number}"))
        made = io.BytesIO()
        np.savez(made, **data)
        files[f"{name}.npz"] = made.getvalue()
    return files


def main() -> None:
    from research import store

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    store.save(given.out, with_checksums(given.archive))


if __name__ == "__main__":
    main()
