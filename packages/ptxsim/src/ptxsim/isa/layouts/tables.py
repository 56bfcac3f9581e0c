"""Index tables: broadcast to one shape, contiguous, and read-only because they are cached and shared."""

from __future__ import annotations

from typing import Any

import numpy as np


def table(*arrays: np.ndarray | int) -> Any:
    """The arrays, broadcast against each other, as a tuple of read-only int64 arrays."""
    found = tuple(np.array(array, np.int64, order="C") for array in np.broadcast_arrays(*arrays))
    for array in found:
        array.setflags(write=False)
    return found
