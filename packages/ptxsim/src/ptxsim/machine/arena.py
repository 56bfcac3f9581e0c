"""Registers, shared and tensor memory that the launches of a kernel use one after the other: to get them
fresh from the system takes longer than to fill them.
"""

from __future__ import annotations

import numpy as np

from ptxsim.machine.tensor_memory import TensorMemory


class Arena:
    """What the last cluster that nobody listened to has given back, if the next one needs the same."""

    def __init__(self):
        self._arrays: dict[str, np.ndarray] = {}
        self._tmem: list[TensorMemory] = []

    def array(self, name: str, shape: tuple[int, ...], dtype) -> np.ndarray:
        """One of this shape, whatever it holds."""
        known = self._arrays.pop(name, None)
        return known if known is not None and known.shape == shape else np.zeros(shape, dtype)

    def tensor_memories(self, count: int, neighbours: bool) -> list[TensorMemory]:
        """To be cleared."""
        known, self._tmem = self._tmem, []
        if len(known) != count or any(one.neighbours != neighbours for one in known):
            return [TensorMemory(neighbours) for _ in range(count)]
        return known

    def give_back(self, tmem: list[TensorMemory], **arrays: np.ndarray) -> None:
        """Those of a cluster whose launch is over, by name."""
        self._arrays, self._tmem = arrays, tmem
