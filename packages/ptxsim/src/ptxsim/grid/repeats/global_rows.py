"""Takes the accesses to global memory out of a log: what is left distinguishes one cluster from another."""

from __future__ import annotations

import numpy as np

from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.bytecode import LOG_COLUMNS, LOG_PLACE, LOG_ROW, LOG_SIZE, LOG_SIZE_MASK
from ptxsim.jit.compiled import compiled
from ptxsim.jit.translate import is_local, is_shared

RUN_ROW, RUN_WRITE, RUN_FIRST, RUN_LAST, RUN_COLUMNS = range(5)  # bytes [first, last) that a row accesses
LINE_BITS, LINES = 7, 4096  # bits of a place within its line; lines of which the run that read there is known
LINE = 1 << LINE_BITS


class GlobalRows:
    """Splits logs; has the arrays that this takes."""

    def __init__(self, group_of_row: np.ndarray):
        """group_of_row: int64, the same for rows of the program whose reads count as one."""
        self.own = np.empty((256, LOG_COLUMNS), np.int64)
        self.runs = np.empty((256, RUN_COLUMNS), np.int64)
        self.lines = np.empty(LINES, np.int64)
        self.group_of_row = group_of_row

    def __call__(self, log: np.ndarray) -> tuple[bytes, np.ndarray | None]:
        """(rows of Observer.accesses without the places in global memory, and whether a store changes what is
        there, which nobody asks; the runs of bytes there, int64 (n, RUN_COLUMNS), or None).
        """
        if len(log) > len(self.own):
            self.own = np.empty((2 * len(log), LOG_COLUMNS), np.int64)
            self.runs = np.empty((2 * len(log), RUN_COLUMNS), np.int64)
        self.lines[:] = -1
        count = _separate(log, self.own, self.runs, self.lines, self.group_of_row)
        return self.own[: len(log)].tobytes(), self.runs[:count].copy() if count else None


@compiled()
def _separate(log, own, runs, lines, groups):
    """Fills `own` and `runs`; the number of runs. A run goes on while accesses begin where the last ended,
    and one of reads where a read begins in it or at its end.
    """
    count, current = 0, -1
    for i in range(len(log)):
        for column in range(LOG_COLUMNS):  # not own[i] = log[i]: its check of shapes takes 2 s to compile
            own[i, column] = log[i, column]
        place = log[i, LOG_PLACE]
        if is_shared(place) or is_local(place):
            continue
        code = log[i, LOG_SIZE] & LOG_SIZE_MASK
        own[i, LOG_PLACE], own[i, LOG_SIZE] = 0, code
        row, write, end = log[i, LOG_ROW], code & 1, place + (code >> 1)
        if current >= 0 and _goes_on(runs, current, row, write, place, groups):
            runs[current, RUN_LAST] = max(end, runs[current, RUN_LAST])
            continue
        line = (place >> LINE_BITS) & (LINES - 1)
        before = -1 if write else lines[line]
        if before >= 0 and _goes_on(runs, before, row, write, place, groups):
            current = before
            runs[current, RUN_LAST] = max(end, runs[current, RUN_LAST])
            continue
        runs[count, RUN_ROW], runs[count, RUN_WRITE] = row, write
        runs[count, RUN_FIRST], runs[count, RUN_LAST] = place, end
        if not write:
            lines[line] = count
        current, count = count, count + 1
    return count


@inner
def _goes_on(runs, run, row, write, place, groups):
    """Whether an access belongs to a run; one of another instruction does not cross into the next line."""
    same, last = runs[run, RUN_ROW] == row, runs[run, RUN_LAST]
    if write or runs[run, RUN_WRITE]:
        return same and place == last and runs[run, RUN_WRITE] == write
    if place < runs[run, RUN_FIRST] or place > last:
        return False
    return same or (place < last or place & (LINE - 1) != 0) and groups[runs[run, RUN_ROW]] == groups[row]
