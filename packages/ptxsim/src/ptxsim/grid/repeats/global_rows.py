"""Separates the accesses to global memory from a log. The rest of the log is compared between clusters."""

from __future__ import annotations

import numpy as np

from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.bytecode import LOG_COLUMNS, LOG_PLACE, LOG_ROW, LOG_SIZE, LOG_SIZE_MASK, LOG_THREAD
from ptxsim.jit.compiled import compiled
from ptxsim.jit.translate import is_local, is_shared

RUN_ROW, RUN_WRITE, RUN_FIRST, RUN_LAST, RUN_GROUP, RUN_COLUMNS = range(
    6
)  # bytes [first, last) that a row accesses
LINE_BITS, LINES = 7, 4096  # bits of an address within its line; lines whose last read run is remembered
LINE = 1 << LINE_BITS


class GlobalRows:
    """Splits logs into rows and runs; reuses its arrays from call to call."""

    def __init__(self, group_of_row: np.ndarray):
        """group_of_row: int64, equal for rows of the program whose reads the checks need not distinguish."""
        self.own = np.empty((256, LOG_COLUMNS), np.int64)
        self.runs = np.empty((256, RUN_COLUMNS), np.int64)
        self.lines = np.empty(LINES, np.int64)
        self.group_of_row = group_of_row

    def __call__(self, log: np.ndarray) -> tuple[bytes, np.ndarray | None]:
        """(rows of Observer.accesses as bytes; runs in global memory, int64 (n, RUN_COLUMNS), or None).

        A warp's access to global memory becomes a single row, without addresses, which are in the runs, and
        without the flag whether a store changes memory, which no check uses.
        """
        if len(log) > len(self.own):
            self.own = np.empty((2 * len(log), LOG_COLUMNS), np.int64)
            self.runs = np.empty((2 * len(log), RUN_COLUMNS), np.int64)
        self.lines[:] = -1
        rows, count = _separate(log, self.own, self.runs, self.lines, self.group_of_row)
        return self.own[:rows].tobytes(), self.runs[:count].copy() if count else None


@compiled()
def _separate(log, own, runs, lines, groups):
    """Fills `own` and `runs`; returns the number of rows and the number of runs."""
    rows, count, run, i = 0, 0, -1, 0
    while i < len(log):
        end, lanes = _access(log, i)
        if lanes:
            row, code = log[i, LOG_ROW], log[i, LOG_SIZE] & LOG_SIZE_MASK
            own[rows, LOG_ROW], own[rows, LOG_THREAD] = row, log[i, LOG_THREAD]
            own[rows, LOG_PLACE], own[rows, LOG_SIZE] = ~lanes, code  # no address is negative
            if code & 1:
                count, run = _written(log, i, end, runs, count, run)
            else:
                count, run = _read(log, i, end, groups[row], runs, lines, count, run)
        else:
            for column in range(
                LOG_COLUMNS
            ):  # not own[rows] = log[i]: its check of shapes takes 2 s to compile
                own[rows, column] = log[i, column]
        rows, i = rows + 1, end
    return rows, count


@inner
def _access(log, start):
    """(end row, mask of lanes) of a warp's access to global memory that starts at row `start`.

    Mask 0: the row accesses other memory.
    """
    row, code, warp = log[start, LOG_ROW], log[start, LOG_SIZE] & LOG_SIZE_MASK, log[start, LOG_THREAD] >> 5
    end, lanes = start, np.int64(0)
    while end < len(log):
        lane, place = log[end, LOG_THREAD] & 31, log[end, LOG_PLACE]
        if is_shared(place) or is_local(place) or log[end, LOG_ROW] != row or lanes >> lane:
            break
        if log[end, LOG_SIZE] & LOG_SIZE_MASK != code or log[end, LOG_THREAD] >> 5 != warp:
            break
        lanes |= 1 << lane
        end += 1
    return max(end, start + 1), lanes


@inner
def _read(log, start, end, group, runs, lines, count, run):
    """(number of runs, run of the last read). A read that starts in a run or at its end extends the run."""
    row, size = log[start, LOG_ROW], (log[start, LOG_SIZE] & LOG_SIZE_MASK) >> 1
    for i in range(start, end):
        place = log[i, LOG_PLACE]
        if run < 0 or not _goes_on(runs, run, row, group, place):
            line = (place >> LINE_BITS) & (LINES - 1)
            run = lines[line]
            if run < 0 or not _goes_on(runs, run, row, group, place):
                run, lines[line] = count, count
                count += 1
                runs[run, RUN_ROW], runs[run, RUN_WRITE], runs[run, RUN_GROUP] = row, 0, group
                runs[run, RUN_FIRST], runs[run, RUN_LAST] = place, place
        runs[run, RUN_LAST] = max(place + size, runs[run, RUN_LAST])
    return count, run


@inner
def _written(log, start, end, runs, count, run):
    """(number of runs, run of the last write). A write at a run's end by the same row extends the run."""
    row, size = log[start, LOG_ROW], (log[start, LOG_SIZE] & LOG_SIZE_MASK) >> 1
    for i in range(start, end):
        place = log[i, LOG_PLACE]
        if run < 0 or runs[run, RUN_WRITE] == 0 or runs[run, RUN_ROW] != row or runs[run, RUN_LAST] != place:
            run = count
            count += 1
            runs[run, RUN_ROW], runs[run, RUN_WRITE], runs[run, RUN_GROUP] = row, 1, -1
            runs[run, RUN_FIRST] = place
        runs[run, RUN_LAST] = place + size
    return count, run


@inner
def _goes_on(runs, run, row, group, place):
    """Whether a read belongs to a run. At a line boundary, only the run's own instruction continues it."""
    last = runs[run, RUN_LAST]
    if runs[run, RUN_GROUP] != group or place < runs[run, RUN_FIRST] or place > last:
        return False
    return place < last or place & (LINE - 1) != 0 or runs[run, RUN_ROW] == row
