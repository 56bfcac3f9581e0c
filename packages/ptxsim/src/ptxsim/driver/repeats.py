"""Recognises launches that repeat an earlier one: same kernel, same arguments, same memory contents.

A run is deterministic, so such a launch has the same outcome and need not be run; programs that time a kernel
launch it a hundred times. Memory contents are compared by a hash, from the second launch of a kernel with the
same arguments on, as long as hashing is faster than running it and the memory has not differed a few times.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST = 1 << 27  # bytes of memory; with more, every launch is run
_PACE = 5e8  # bytes hashed and copied per second
_TRIES = 3  # times that memory may differ before it is no longer compared

Arrays = dict[int, np.ndarray]  # address -> bytes


@dataclass
class _Known:
    start: bytes  # hash of memory before the launch
    outcome: Any
    changed: Arrays  # contents afterwards of the arrays that it changed


class Repeats:
    def __init__(self):
        self._seconds: dict[Hashable, float] = {}  # seconds that the last launch took
        self._differed: Counter[Hashable] = Counter()
        self._known: dict[Hashable, _Known] = {}
        self._start: tuple[bytes, Arrays] | None = None  # hash and copy of memory before the current launch

    def find(self, key: Hashable, memory: Arrays) -> Any:
        """The outcome of the earlier launch that this one repeats, after making its changes to memory. None
        if this launch has to be run.
        """
        self._start = None
        size = sum(array.nbytes for array in memory.values())
        if size > MOST or size / _PACE > self._seconds.get(key, 0) or self._differed[key] > _TRIES:
            return None
        start, known = _hash(memory), self._known.get(key)
        if known is None or known.start != start:
            self._start = start, {address: array.copy() for address, array in memory.items()}
            self._differed[key] += 1
            return None
        for address, after in known.changed.items():
            memory[address][:] = after
        return known.outcome

    def keep(self, key: Hashable, outcome: Any, memory: Arrays, seconds: float) -> None:
        """Keeps the outcome of a launch for which `find` returned None."""
        self._seconds[key] = seconds
        if self._start is None:
            return
        start, before = self._start
        changed = {a: memory[a].copy() for a in before if not np.array_equal(before[a], memory[a])}
        self._known[key] = _Known(start, outcome, changed)
        self._start = None


def _hash(memory: Arrays) -> bytes:
    digest = hashlib.blake2b()
    for address in sorted(memory):
        digest.update(f"{address} {memory[address].size} ".encode())
        digest.update(memory[address].data)
    return digest.digest()
