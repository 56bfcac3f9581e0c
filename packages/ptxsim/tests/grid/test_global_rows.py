"""Runs of bytes contain exactly the log's accesses to global memory; rows contain the rest."""

from __future__ import annotations

import numpy as np
import pytest

from ptxsim.grid.repeats.global_rows import RUN_FIRST, RUN_LAST, RUN_ROW, RUN_WRITE, GlobalRows
from ptxsim.isa.address_map import LOCAL_BASE, SHARED_BASE
from ptxsim.jit.bytecode import LOG_SAME

GROUPS = np.array([0, 0, 1, 2, 2, 2, 3], np.int64)  # of rows of the program whose reads count as one


def logged(rng, accesses: int) -> np.ndarray:
    """Accesses of warps, (row, thread, place, size): lanes in a row, in one place, apart, or anywhere."""
    rows = []
    for _ in range(accesses):
        row, write, size = int(rng.integers(7)), int(rng.integers(2)), 1 << int(rng.integers(5))
        base = [SHARED_BASE + 4096, LOCAL_BASE + 64, 0x7F00_0000, 0x7F00_0000][rng.integers(4)]
        lanes = np.flatnonzero(rng.random(32) < rng.choice([0.1, 0.5, 1]))
        steps = [lanes * size, lanes * 0, lanes * 256, rng.integers(0, 64, len(lanes)) * size]
        places = base + int(rng.integers(8)) * 16 + steps[rng.integers(4)]
        same = LOG_SAME * write * int(rng.integers(2))
        warp = 32 * int(rng.integers(3))
        rows += [
            (row, warp + lane, place, 2 * size + write + same)
            for lane, place in zip(lanes, places, strict=True)
        ]
    return np.array(rows, np.int64)


def touched(spans) -> dict[tuple, set[int]]:
    """(group, whether it is written) -> bytes; spans: (row, whether it is written, first, last)."""
    found: dict[tuple, set[int]] = {}
    for row, write, first, last in spans:
        found.setdefault((int(GROUPS[row]), int(write)), set()).update(range(first, last))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_runs_are_the_bytes_that_were_accessed(seed):
    log = logged(np.random.default_rng(seed), 60)
    outside = log[log[:, 2] < SHARED_BASE]
    size = (outside[:, 3] & (LOG_SAME - 1)) >> 1
    spans = np.stack([outside[:, 0], outside[:, 3] & 1, outside[:, 2], outside[:, 2] + size], 1)
    runs = GlobalRows(GROUPS)(log)[1]
    assert touched(runs[:, [RUN_ROW, RUN_WRITE, RUN_FIRST, RUN_LAST]].tolist()) == touched(spans.tolist())


@pytest.mark.parametrize("column, change", [(0, 1), (1, 1), (1, 32), (3, 2), (3, 1)])
def test_rows_tell_all_but_the_place_in_global_memory(column, change):
    def rows(change: int) -> bytes:
        log = np.array([(2, 5, 0x7F00_0000, 8), (2, 9, 0x7F00_0400, 8)], np.int64)
        log[1, column] += change
        return GlobalRows(GROUPS)(log)[0]

    assert rows(0) != rows(change)


def test_rows_tell_nothing_of_places_and_values_in_global_memory():
    log = np.array([(2, 5, 0x7F00_0000, 9), (2, 9, 0x7F00_0400, 9), (1, 9, SHARED_BASE, 9)], np.int64)
    other = log + [(0, 0, 4096, LOG_SAME), (0, 0, 64, 0), (0, 0, 0, 0)]
    elsewhere = log + [(0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 16, 0)]
    first, second, third = (GlobalRows(GROUPS)(one)[0] for one in (log, other, elsewhere))
    assert first == second != third
