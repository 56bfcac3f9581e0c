"""Which other parts of a buffer are written, if the part that is read is not: they show which index is
wrong.
"""

from __future__ import annotations

import itertools

import numpy as np

_MOST = 3  # parts that are listed


def written_parts(flags: np.ndarray) -> list[tuple[int, int]]:
    """The runs of true flags as (first, last)."""
    padded = np.concatenate(([0], np.asarray(flags, bool).astype(np.int8), [0]))
    steps = np.diff(padded)
    firsts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    return list(zip(firsts.tolist(), (ends - 1).tolist(), strict=True))


def told_of(flags: np.ndarray, what: str, unit: str) -> str:
    """`; nothing of Asmem is written so far`, or which parts are; evenly spaced parts by their distance."""
    parts = written_parts(flags)
    if not parts:
        return f"; nothing of {what} is written so far"
    lengths = {last - first + 1 for first, last in parts}
    steps = {after[0] - before[0] for before, after in itertools.pairwise(parts)}
    if len(parts) > 2 and len(lengths) == len(steps) == 1:
        runs = f"{lengths.pop()} of every {steps.pop()} {unit} from {parts[0][0]} on"
    else:
        runs = f"{unit} " + " and ".join(f"{first} to {last}" for first, last in parts[:_MOST])
        runs += ", among others," if len(parts) > _MOST else ""
    return f"; of {what}, {runs} are written so far"
