"""Keeps checksums of data that must be equal bit for bit: `python -m research.chip.checksums ARCHIVE OUT`.

Applies to every array of SMALLEST bytes or more that ptxsim leaves as the chip did in both orders; of other
large arrays a sample is kept. OUT has everything else of ARCHIVE, a store that again.py or replay.py wrote.
"""

from __future__ import annotations

import argparse
import io
import itertools
from pathlib import Path

import numpy as np

from research import store
from research.chip.compact import LARGE, checksums, sampled
from research.chip.replay import BLACKWELL, ORDERS, Caught, files_of, load_caught

SMALLEST = 128  # bytes of an array that is kept as checksums


def with_checksums(archive: Path) -> dict[str, bytes]:
    """The files of an archive, with checksums for arrays that all runs of ptxsim leave bit for bit as the
    chip did, and samples of large ones that they do not.
    """
    files = files_of(archive)
    caught: dict[str, list[Caught]] = {}
    for one in load_caught(archive):
        caught.setdefault(one.name.removesuffix(f".{BLACKWELL}"), []).append(one)
    for name, ones in caught.items():
        data = dict(np.load(io.BytesIO(files[f"{name}.npz"])))
        large = {int(key[3:]) for key in data if key.startswith("out") and data[key].size >= SMALLEST}
        for one, order in itertools.product(ones, ORDERS) if large else ():
            _, left = one.launch(order)
            large &= {n for n in large if (left[n].view(np.uint8) == data[f"out{n}"]).all()}
        for number in large:
            data[f"sums{number}"] = checksums(data.pop(f"out{number}"))
        for number in range(len(ones[0].after)):
            if (whole := data.get(f"out{number}", np.empty(0))).size == ones[0].before[number].size > LARGE:
                data[f"out{number}"] = sampled(whole.view(ones[0].dtype_of(number))).view(np.uint8)
        made = io.BytesIO()
        np.savez(made, **data)
        files[f"{name}.npz"] = made.getvalue()
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    store.save(given.out, with_checksums(given.archive))


if __name__ == "__main__":
    main()
