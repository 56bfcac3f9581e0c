"""Bytes of global memory that a box of a tensor map covers."""

from __future__ import annotations

import functools

import numpy as np


def box_rows(tmap, start: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """(offsets, size): the box is the byte ranges [offset, offset + size), counted from the map's first
    element.

    Elements outside the tensor are left out. With an element stride in the innermost dimension, every element
    is a range of its own.
    """
    item = tmap.dtype.itemsize
    if all(0 <= s and s + b <= d for s, b, d in zip(start, tmap.box, tmap.dims, strict=True)):
        steps = (item, *tmap.strides)
        starts, size = _whole_box(tmap.box, tmap.element_strides, steps)
        return starts + sum(s * step for s, step in zip(start, steps, strict=True)), size
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


@functools.lru_cache(maxsize=64)
def _whole_box(box: tuple, element_strides: tuple, steps: tuple) -> tuple[np.ndarray, int]:
    """Ranges of a box that lies inside its tensor, from the box's first element on."""
    offsets = np.zeros(1, np.int64)
    for axis in reversed(range(len(box))):
        if axis == 0 and element_strides[0] == 1:
            return offsets, box[0] * steps[0]
        offsets = (offsets[:, None] + np.arange(0, box[axis], element_strides[axis]) * steps[axis]).reshape(
            -1
        )
    return offsets, steps[0]
