"""Rows of vector clocks: their maxima and minima, and what a release and an acquire do to them."""

from __future__ import annotations

import numpy as np

from ptxsim.jit.compiled import compiled


def joined(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The element-wise maximum of two clocks, of which one may be shorter."""
    if len(a) == len(b):
        return np.maximum(a, b)
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    if not len(shorter):
        return longer
    found = longer.copy()
    np.maximum(found[: len(shorter)], shorter, out=found[: len(shorter)])
    return found


@compiled()
def covers(a, b):
    """Whether clock a is at least clock b everywhere."""
    behind = False
    for i in range(len(b)):
        behind |= (a[i] if i < len(a) else 0) < b[i]
    return not behind


def grown(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """The columns in which a clock, which may have become wider, differs from what it was."""
    n = len(before)
    if not n:
        return np.flatnonzero(now)
    return np.flatnonzero(np.concatenate((now[:n] != before[: len(now)], now[n:] != 0)))


def with_epoch(clock: np.ndarray, column: int, epoch: int) -> np.ndarray:
    """A copy of a clock that knows this epoch, widened if necessary."""
    found = clock.copy() if column < len(clock) else np.pad(clock, (0, column + 1 - len(clock)))
    found[column] = epoch
    return found


def lowest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    n = min(len(a), len(b))
    return np.minimum(a[:n], b[:n])


def most(matrix: np.ndarray, rows) -> np.ndarray:
    """The maximum of rows, whose numbers ascend, or a copy of one row."""
    if not isinstance(rows, np.ndarray):
        return matrix[rows].copy()
    return _most(matrix, int(rows[0]), int(rows[-1]) + 1) if dense(rows) else matrix[rows].max(0)


def dense(rows: np.ndarray) -> bool:
    return len(rows) > 0 and int(rows[-1]) - int(rows[0]) == len(rows) - 1


def rows_of(agents):
    """An index for these agents' rows: a slice, which is cheaper, if they are contiguous."""
    if not isinstance(agents, np.ndarray) or not dense(agents):
        return agents
    return slice(int(agents[0]), int(agents[-1]) + 1)


@compiled()
def _most(matrix, first, last):
    out = matrix[first].copy()
    for r in range(first + 1, last):
        for i in range(len(out)):
            out[i] = max(out[i], matrix[r, i])
    return out


@compiled()
def second_most(matrix, rows):
    """The second-highest value of the rows, per column."""
    high = matrix[rows[0]].copy()
    out = np.zeros_like(high)
    for r in rows[1:]:
        for i in range(len(out)):
            value = matrix[r, i]
            out[i] = max(out[i], min(high[i], value))
            high[i] = max(high[i], value)
    return out


@compiled()
def release_rows(clock, thread_clock, first, last):
    """The maxima of both clocks of the agents from first to last - 1; ends their epochs."""
    found = _most(clock, first, last), _most(thread_clock, first, last)
    for agent in range(first, last):
        clock[agent, agent] += 1
    return found


@compiled()
def release_rows_into(clock, thread_clock, first, last, known, thread_known):
    for r in range(first, last):
        for i in range(len(known)):
            known[i] = max(known[i], clock[r, i])
        for i in range(len(thread_known)):
            thread_known[i] = max(thread_known[i], thread_clock[r, i])
        clock[r, r] += 1


@compiled()
def _raise_dense(clock, thread_clock, first, last, known, thread_known):
    for r in range(first, last):
        for i in range(len(known)):
            clock[r, i] = max(clock[r, i], known[i])
        for i in range(len(thread_known)):
            thread_clock[r, i] = max(thread_clock[r, i], thread_known[i])


def raise_rows(clock: np.ndarray, thread_clock: np.ndarray, rows, known: np.ndarray, thread_known) -> None:
    """Joins known clocks into rows of both clocks, which may have become wider since `known` was taken."""
    if not isinstance(rows, np.ndarray):
        _raise_dense(clock, thread_clock, rows, rows + 1, known, thread_known)
    elif dense(rows):
        _raise_dense(clock, thread_clock, int(rows[0]), int(rows[-1]) + 1, known, thread_known)
    else:
        for row in rows.tolist():
            _raise_dense(clock, thread_clock, row, row + 1, known, thread_known)
