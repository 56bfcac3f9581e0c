"""Ranges of lines, and which of them hold which, as text."""

from __future__ import annotations

import numpy as np


def mapping(numbers: np.ndarray, source: np.ndarray, most: int = 3) -> str:
    """`0-63 hold 64-127, 64-127 hold 0-63`."""
    breaks = np.flatnonzero((np.diff(source) != 1) | (np.diff(numbers) != 1)) + 1
    parts = [
        f"{_range(n)} hold{'s' * (len(n) == 1)} {_range(s)}"
        for n, s in zip(np.split(numbers, breaks), np.split(source, breaks), strict=True)
    ]
    return ", ".join(parts[:most]) + (", ..." if len(parts) > most else "")


def _range(numbers: np.ndarray) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"
