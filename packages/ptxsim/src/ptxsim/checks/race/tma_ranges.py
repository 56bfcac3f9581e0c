"""Bytes of global memory that a box of a tensor map covers, and merging of byte spans."""

from __future__ import annotations

import functools

import numpy as np


def box_spans(tmap, start: tuple[int, ...]) -> np.ndarray:
    """The bytes of a box as disjoint spans [first, last), counted from the map's first element: int64 (n, 2).

    Elements outside the tensor are left out. With an element stride in the innermost dimension, every element
    is a span of its own.
    """
    item = tmap.dtype.itemsize
    if tmap.holds(start):
        steps = (item, *tmap.strides)
        spans = _whole_box(tmap.box, tmap.element_strides, steps)
        return spans + sum(s * step for s, step in zip(start, steps, strict=True))
    offsets = np.zeros(1, np.int64)
    for axis in reversed(range(1, tmap.rank)):
        position = start[axis] + np.arange(0, tmap.box[axis], tmap.element_strides[axis])
        position = position[(position >= 0) & (position < tmap.dims[axis])]
        offsets = (offsets[:, None] + position * tmap.strides[axis - 1]).reshape(-1)
    if tmap.element_strides[0] != 1:
        inner = start[0] + np.arange(0, tmap.box[0], tmap.element_strides[0])
        inner = inner[(inner >= 0) & (inner < tmap.dims[0])]
        return spans_from((offsets[:, None] + inner * item).reshape(-1), item)
    first, last = max(start[0], 0), min(start[0] + tmap.box[0], tmap.dims[0])
    return spans_from(offsets + first * item, max(last - first, 0) * item)


@functools.lru_cache(maxsize=64)
def _whole_box(box: tuple, element_strides: tuple, steps: tuple) -> np.ndarray:
    """Spans of a box that lies inside its tensor, from the box's first element on."""
    offsets, inner = np.zeros(1, np.int64), element_strides[0] == 1
    for axis in reversed(range(int(inner), len(box))):
        places = np.arange(0, box[axis], element_strides[axis]) * steps[axis]
        offsets = (offsets[:, None] + places).reshape(-1)
    return spans_from(offsets, box[0] * steps[0] if inner else steps[0])


def spans_from(starts: np.ndarray, size: int) -> np.ndarray:
    """[start, start + size) for every start; spans that touch or overlap are merged."""
    if not size or not len(starts):
        return np.zeros((0, 2), np.int64)
    starts = np.sort(starts)
    breaks = np.flatnonzero(np.diff(starts) > size)
    first, last = np.concatenate([[0], breaks + 1]), np.concatenate([breaks, [len(starts) - 1]])
    return np.stack([starts[first], starts[last] + size], axis=1)


def ascending(spans: np.ndarray) -> np.ndarray:
    return spans[np.argsort(spans[:, 0])]


def merged(spans: np.ndarray) -> np.ndarray:
    """The same bytes, as disjoint spans in ascending order; spans: int64 (n, 2), at least one."""
    sizes = spans[:, 1] - spans[:, 0]
    if (sizes == sizes[0]).all():
        return spans_from(spans[:, 0], int(sizes[0]))
    spans = ascending(spans)
    ends = np.maximum.accumulate(spans[:, 1])
    starts = np.flatnonzero(np.concatenate([[True], spans[1:, 0] > ends[:-1]]))
    return np.stack([spans[starts, 0], ends[np.append(starts[1:], len(spans)) - 1]], axis=1)
