"""Bytes of global memory that a box of a tensor map covers."""

from __future__ import annotations

import numpy as np


def box_rows(tmap, start: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """(offsets, size): the box is the byte ranges [offset, offset + size), counted from the map's first element.

    Elements outside the tensor are left out. With an element stride in the innermost dimension, every element is a
    range of its own.
    """
    item = tmap.dtype.itemsize
    offsets = np.zeros(1, np.int64)
    for axis in reversed(range(1, tmap.rank)):
        position = start[axis] + np.arange(0, tmap.box[axis], tmap.element_strides[axis])
        position = position[(position >= 0) & (position < tmap.dims[axis])]
        offsets = (offsets[:, None] + position * tmap.strides[axis - 1]).reshape(-1)
    if tmap.element_strides[0] != 1:
        inner = start[0] + np.arange(0, tmap.box[0], tmap.element_strides[0])
        inner = inner[(inner >= 0) & (inner < tmap.dims[0])]
        return (offsets[:, None] + inner * item).reshape(-1), item
    first, last = max(start[0], 0), min(start[0] + tmap.box[0], tmap.dims[0])
    if last <= first:
        return np.zeros(0, np.int64), 0
    return offsets + first * item, (last - first) * item
