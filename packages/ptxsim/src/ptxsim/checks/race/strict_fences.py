"""Fences .sc that reach other clusters: what those that a thread knows of hand on (PTX ISA 8.9)."""

from __future__ import annotations

import functools
from collections import deque

import numpy as np

from ptxsim.checks.race.clock_rows import joined

_MOST = 4  # of a thread that are remembered
_NEVER = np.iinfo(np.int32).max
_NOTHING = np.zeros(0, np.int32)


class StrictFences:
    """The last fences of each thread: the epoch that each ended, and the clocks that it handed over."""

    def __init__(self, threads: int):
        self._threads = threads
        self._fences: dict[int, deque[tuple[np.ndarray, np.ndarray]]] = {}  # thread -> clocks, latest first
        self._epochs = np.full((_MOST, threads), _NEVER, np.int32)
        self._handed: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}  # until the next fence

    def __bool__(self) -> bool:
        return bool(self._fences)

    def add(self, thread: int, epoch: int, clocks: tuple[np.ndarray, np.ndarray]) -> None:
        self._fences.setdefault(thread, deque(maxlen=_MOST)).appendleft(clocks)
        self._epochs[1:, thread] = self._epochs[:-1, thread].copy()
        self._epochs[0, thread] = epoch
        self._handed.clear()

    def known(self, thread: int, clock: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the latest fence of each other thread handed over, among those in this thread's clock."""
        comes_after = clock[: self._threads] >= self._epochs
        comes_after[:, thread] = False
        key = comes_after.tobytes()
        if key not in self._handed:
            others = np.flatnonzero(comes_after.any(axis=0)).tolist()
            found = [self._fences[other][int(comes_after[:, other].argmax())] for other in others]
            self._handed[key] = (
                functools.reduce(joined, (clocks for clocks, _ in found), _NOTHING),
                functools.reduce(joined, (clocks for _, clocks in found), _NOTHING),
            )
        return self._handed[key]
