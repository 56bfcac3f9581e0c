"""Takes accesses of global memory out of a log: what is left tells one cluster from another."""

from __future__ import annotations

import numpy as np

from ptxsim.isa.address_map import SHARED_BASE, SHARED_END
from ptxsim.jit.bytecode import LOG_COLUMNS, LOG_PLACE, LOG_ROW, LOG_SIZE, LOG_SIZE_MASK
from ptxsim.jit.compiled import compiled

RUN_ROW, RUN_WRITE, RUN_FIRST, RUN_LAST, RUN_COLUMNS = range(5)  # bytes [first, last) that a row accesses


class GlobalRows:
    """Splits logs; has the arrays that this takes."""

    def __init__(self):
        self.own = np.empty((256, LOG_COLUMNS), np.int64)
        self.runs = np.empty((256, RUN_COLUMNS), np.int64)

    def __call__(self, log: np.ndarray) -> tuple[bytes, np.ndarray | None]:
        """(rows of Observer.accesses without the places in global memory, and whether a store changes what is
        there, which nobody asks; the runs of bytes there, int64 (n, RUN_COLUMNS), or None).
        """
        if len(log) > len(self.own):
            self.own = np.empty((2 * len(log), LOG_COLUMNS), np.int64)
            self.runs = np.empty((2 * len(log), RUN_COLUMNS), np.int64)
        count = _separate(log, self.own, self.runs)
        return self.own[: len(log)].tobytes(), self.runs[:count].copy() if count else None


@compiled()
def _separate(log, own, runs):
    """Fills `own` and `runs`; the number of runs. A run goes on while accesses begin where the last ended."""
    count = 0
    for i in range(len(log)):
        for column in range(LOG_COLUMNS):  # not own[i] = log[i]: its check of shapes takes 2 s to compile
            own[i, column] = log[i, column]
        place = log[i, LOG_PLACE]
        if SHARED_BASE <= place < SHARED_END:
            continue
        code = log[i, LOG_SIZE] & LOG_SIZE_MASK
        own[i, LOG_PLACE], own[i, LOG_SIZE] = 0, code
        row, write, end = log[i, LOG_ROW], code & 1, place + (code >> 1)
        last = runs[count - 1]
        if count and last[RUN_ROW] == row and last[RUN_WRITE] == write and last[RUN_LAST] == place:
            last[RUN_LAST] = end
            continue
        runs[count, RUN_ROW], runs[count, RUN_WRITE] = row, write
        runs[count, RUN_FIRST], runs[count, RUN_LAST] = place, end
        count += 1
    return count
