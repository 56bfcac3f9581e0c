"""Output elements that no thread and no copy has written.

A float array that holds one and the same NaN in every element when the kernel starts is an output that the
caller has marked: what still holds that NaN afterwards was never written. (Arithmetic makes other NaNs.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxsim.causes.catalogue import CAUSES


@dataclass(frozen=True)
class Marked:
    name: str
    array: np.ndarray
    mark: int  # bit pattern of every element before the launch


def _bits(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(f"u{array.dtype.itemsize}")


def marked_arrays(arrays: dict[str, np.ndarray]) -> list[Marked]:
    """Those of `arrays` (by name) that hold nothing but one NaN."""
    found = []
    for name, array in arrays.items():
        if array.size < 2 or array.dtype.kind not in "fV" or array.dtype.itemsize > 8:
            continue
        try:
            nan = np.isnan(float(array.flat[0]))
        except TypeError:  # no number
            continue
        bits = _bits(array)
        if nan and (bits[:64] == bits[0]).all() and (bits == bits[0]).all():
            found.append(Marked(name, array, int(bits[0])))
    return found


def report_unwritten(marked: list[Marked], reporter) -> None:
    """A finding for every array of which a part, and not all, still holds its mark."""
    for output in marked:
        left = _bits(output.array) == output.mark
        count = int(left.sum())
        if not 0 < count < left.size:
            continue
        first = tuple(int(i) for i in np.unravel_index(int(np.argmax(left)), output.array.shape))
        reporter.add(
            "uninitialized", "error",
            f"{output.name}: {count} of {left.size} elements were never written "
            f"(the first one is {output.name}{list(first)})",
            CAUSES["incomplete-output"],
            key=("output", output.name), buffer=output.name,
        )  # fmt: skip
