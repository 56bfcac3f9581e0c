"""Tensor maps of im2col modes (PTX ISA 5.5.4, 5.5.5): a copy takes a sequence of pixels from images.

Follows cuTensorMapEncodeIm2col: dimensions are C, W[, H[, D]], N, the innermost first. The bounding box spans
W, H and D: `lower` counts from the first pixel, `upper` from the last. A copy starts at a pixel and steps
along W by the traversal stride to the end of the box, then to its next row, its next slice, the next image.
The offsets of the instruction are added to the coordinates of each pixel that is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxsim.machine.tensor_map import TensorMap

MOST = 256  # most elements of a tiled box along a dimension
WIDE = 128  # pixels of .im2col::w::128
_TENSOR = ("array", "dims", "strides", "byte_offset", "dtype", "packed", "padded", "segment", "name")
_SHARED = (*_TENSOR, "swizzle", "fill")


@dataclass(eq=False)
class Im2colMap(TensorMap):
    """An im2col tensor map. box: (channels per pixel, pixels per copy). lower, upper: corners of the bounding
    box along W, H, D.
    """

    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    pixels: int = 0

    def __post_init__(self):
        rank = len(self.dims) if self.dims is not None else self.array.ndim
        if not self.pixels:
            channels, self.pixels = self.box
            self.box = (channels, *[1] * (rank - 1))
        super().__post_init__()
        self.parts: dict[tuple[int, int], TensorMap] = {}
        limit = {3: 15, 4: 7, 5: 4}.get(rank)
        corners = (*self.lower, *self.upper)
        if limit is None or len(self.lower) != rank - 2 or len(self.upper) != rank - 2:
            raise ValueError(
                f"Im2colMap: rank {rank} with corners {self.lower} and {self.upper}; expected rank 3, 4 or 5 "
                "and rank - 2 numbers in each corner"
            )
        if not all(-(1 << limit) <= corner < 1 << limit for corner in corners):
            raise ValueError(f"Im2colMap: corners {corners} of a map of rank {rank} exceed {limit + 1} bits")
        if not 1 <= self.pixels <= 1024:
            raise ValueError(f"Im2colMap: a copy of {self.pixels} pixels; expected 1..1024")

    def run(self, count: int) -> TensorMap:
        """The tiled map that covers `count` pixels along W."""
        key = count, self.segment
        if key not in self.parts:
            extent = (count - 1) * self.element_strides[1] + 1
            box = (self.box[0], extent, *self.box[2:])
            steps = (1, self.element_strides[1], *[1] * (self.rank - 2))
            values = {name: getattr(self, name) for name in _SHARED}
            self.parts[key] = TensorMap(**values, box=box, element_strides=steps)
        return self.parts[key]

    def box_of(self, moved: int = 0) -> tuple[list[int], list[int]]:
        """(first, last) pixel of the bounding box along W, H, D; shifted along W by `moved`."""
        low, size = list(self.lower), self.dims[1:-1]
        high = [extent - 1 + corner for extent, corner in zip(size, self.upper, strict=True)]
        low[0], high[0] = low[0] + moved, high[0] + moved
        return low, high


def runs(tmap: Im2colMap, start: tuple[int, ...], pixels: int, offsets, wide: bool) -> Iterator[tuple]:
    """(coordinates of the first pixel, number of pixels) of each run along W that a copy takes.

    wide: .im2col::w, which stays in one row of every image; offsets is then (shift of W and of the box,).
    """
    channel, *at, image = start
    low, high = tmap.box_of(offsets[0] if wide else 0)
    if wide:
        at[0] += offsets[0]
    moved = [0] * len(at) if wide else list(offsets)
    step, most = tmap.element_strides[1], (MOST - 1) // tmap.element_strides[1] + 1
    while pixels > 0:
        count = max(1, min(pixels, most, (high[0] - at[0]) // step + 1))
        yield (channel, *(a + o for a, o in zip(at, moved, strict=True)), image), count
        pixels -= count
        at[0] += count * step
        axis = 0
        while axis < len(at) and at[axis] > high[axis]:
            at[axis] = low[axis]
            axis = len(at) if wide else axis + 1
            if axis < len(at):
                at[axis] += tmap.element_strides[axis + 1]
        image += axis == len(at)
