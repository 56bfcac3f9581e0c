"""Tensor maps: how TMA accesses a global array. Follows cuTensorMapEncodeTiled, innermost dimension first."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ptxsim.isa.layouts.swizzle import SPAN, Mode
from ptxsim.machine.lazy import cached_property

SWIZZLES = (0, 32, 64, 128, "128_atom32", "128_atom64")
MAP_BYTES = 128  # of a map (PTX ISA 5.5.8)
PADDED_START = 128  # copies of padded elements start at multiples of it


@dataclass(eq=False)
class TensorMap:
    """A tiled tensor map.

    `array`: numpy array that holds the tensor (any layout whose memory is C-contiguous as a whole).
    `box`: elements per dimension that one copy moves, innermost first.
    `dims`: extent per dimension, innermost first; default: the array's shape reversed.
    `strides`: byte strides of dimensions 1.., default: C order. `element_strides`: traversal steps (1).
    `swizzle`: 0, 32, 64 or 128 (bytes), or "128_atom32", "128_atom64", which move larger pieces than 16 B.
    `fill`: "zero" or "nan", the value of elements outside. `byte_offset`: of the first element in the array.
    `dtype`: numpy dtype, default: the array's. `packed`: 2 if each byte holds two 4-bit elements, as in
    CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B. `padded`: 8 or 12 if each 16 bytes of shared memory hold 16 elements
    of 4 or 6 bits, in so many bytes, as in 16U4_ALIGN16B and 16U6_ALIGN16B. Innermost coordinates of copies
    then count elements, while `box` and `dims` count bytes of global memory. Raises ValueError if
    cuTensorMapEncodeTiled would reject the map.
    """

    array: np.ndarray
    box: tuple[int, ...]
    swizzle: Mode = 0
    dims: tuple[int, ...] = None  # type: ignore[assignment]  # __post_init__ replaces each None
    strides: tuple[int, ...] = None  # type: ignore[assignment]
    element_strides: tuple[int, ...] = None  # type: ignore[assignment]
    fill: str = "zero"
    byte_offset: int = 0
    dtype: np.dtype = None  # type: ignore[assignment]
    packed: int = 1
    padded: int = 0
    segment: int = -1  # of global memory; set in the launch's own copy of the map
    name: str = ""
    at: int = 0  # address of the map itself, if a kernel can write there; set when a copy uses the map

    def __post_init__(self):
        if not isinstance(self.array, np.ndarray):
            raise ValueError(f"TensorMap needs a numpy array (got {type(self.array).__name__})")
        if not self.array.flags.c_contiguous:
            raise ValueError("TensorMap needs a C-contiguous array: pass numpy.ascontiguousarray(x)")
        try:
            self.dtype = np.dtype(self.dtype or self.array.dtype)
        except TypeError as wrong:
            raise ValueError(f"TensorMap: {wrong}") from None
        size = self.dtype.itemsize
        self.box = self._whole("box")
        if self.dims is None:
            self.dims = self.array.shape[::-1]
        self.dims = self._whole("dims")
        rank = len(self.dims)
        if self.strides is None:
            self.strides = tuple(int(size * np.prod(self.dims[: i + 1])) for i in range(rank - 1))
        self.strides = self._whole("strides")
        self.element_strides = self.element_strides or (1,) * rank
        self.element_strides = self._whole("element_strides")
        self._check(rank, size)
        self.element_strides = (1, *self.element_strides[1:])  # the driver ignores the innermost one

    def _whole(self, name: str) -> tuple[int, ...]:
        given = getattr(self, name)
        try:
            return tuple(map(operator.index, given))
        except TypeError:
            raise ValueError(f"TensorMap: {name} is a tuple of whole numbers (got {given!r})") from None

    def place(self, coordinates: tuple[int, ...]) -> tuple[int, ...]:
        """A copy's coordinates in the units of `box` and `dims`. Raises ValueError for half a byte, or for
        what no padded copy may start at (PTX ISA 9.7.9.27.1.1).
        """
        inner, *rest = coordinates
        if self.padded and inner % PADDED_START:
            raise ValueError(f"coordinate {inner} of padded elements is not a multiple of {PADDED_START}")
        if inner % self.packed:
            raise ValueError(f"coordinate {inner} of 4-bit elements is odd: a copy starts at a whole byte")
        return (inner * self.padded // 16 if self.padded else inner // self.packed, *rest)

    def elements(self, extents: tuple[int, ...]) -> tuple[int, ...]:
        """`box` or `dims`, with the innermost extent in elements."""
        inner, *rest = extents
        return (inner * 16 // self.padded if self.padded else inner * self.packed, *rest)

    def box_text(self, start: tuple[int, ...]) -> str:
        """The box at these coordinates, as a slice of the array with rows first: `A[0:128, 64:128]`.

        If the box is not a rectangle of a matrix: `A at (64, 0, 0)`, innermost first as in PTX.
        """
        name, at = self.name or "a tensor map", tuple(start)
        if self.array.ndim != 2 or set(self.element_strides) != {1}:
            return f"{name} at {at}"
        whole = self.dims == self.array.shape[::-1] and not self.byte_offset
        if whole and self.strides == (self.dtype.itemsize * self.dims[0],):  # past its edges, too
            rows, columns = (f"{at[axis]}:{at[axis] + self.box[axis]}" for axis in (1, 0))
            return f"{name}[{rows}, {columns}]"
        if not self.holds(at):
            return f"{name} at {at}"  # elements past the end of a row are not those of the next row
        end = tuple(a + b - 1 for a, b in zip(at, self.box, strict=True))
        first, last = self.offset_of(at), self.offset_of(end)
        size = self.array.itemsize
        (top, left), (bottom, right) = (divmod(o // size, self.array.shape[1]) for o in (first, last))
        if (bottom - top + 1) * (right - left + 1) != np.prod(self.box):
            return f"{name} at {at}"  # not a rectangle of the array
        return f"{name}[{top}:{bottom + 1}, {left}:{right + 1}]"

    def _check(self, rank: int, size: int) -> None:
        wrong = next(self._wrong(rank, size), None)
        if wrong is not None:
            raise ValueError(f"TensorMap: {wrong}")

    def _wrong(self, rank: int, size: int) -> Iterator[str]:
        """What breaks a rule of cuTensorMapEncodeTiled (CUDA driver API) or lies past the array's end."""
        if not 1 <= rank <= 5:
            yield f"rank {rank} is not 1..5"
        if {len(self.box), len(self.element_strides), len(self.strides) + 1} != {rank}:
            lengths = f"box {self.box}, strides {self.strides}, element_strides {self.element_strides}"
            yield f"{lengths} do not match the rank, {rank} (strides have one less)"
        if self.dtype.kind not in "biufV" or size not in (1, 2, 4, 8):
            yield f"elements of {self.dtype} have no CU_TENSOR_MAP_DATA_TYPE"
        inner, at = self.box[0] * size, self.byte_offset
        if not all(1 <= b <= 256 for b in self.box):
            yield f"box {self.box} has an extent outside 1..256"
        if not all(1 <= d <= 1 << 32 for d in self.dims):
            yield f"dims {self.dims} have an extent outside 1..2^32"
        if not all(s % 16 == 0 and 0 <= s < 1 << 40 for s in self.strides):
            yield f"strides {self.strides} are not multiples of 16 B from 0 to 2^40"
        if not all(1 <= e <= 8 for e in self.element_strides):
            yield f"element strides {self.element_strides} outside 1..8"
        if self.swizzle not in SWIZZLES:
            yield f"swizzle {self.swizzle} is not one of {SWIZZLES}"
        if inner % 16:
            yield f"inner box of {inner} B is not a multiple of 16 B"
        if self.swizzle and inner > SPAN[self.swizzle]:
            yield f"inner box of {inner} B exceeds the {self.swizzle} B swizzle"
        if self.packed not in (1, 2) or self.packed == 2 and size != 1:
            yield f"packed={self.packed} is neither 1 nor 2 elements in a byte"
        if self.padded:
            yield from self._wrong_padding(size)
        if self.fill not in ("zero", "nan"):
            yield f'fill must be "zero" or "nan" (got {self.fill!r})'
        if at % 16 or at < 0:
            yield f"global address offset {at} is not a multiple of 16 B from 0 on"
        steps = size, *self.strides
        overlap = any(d * s > t for d, s, t in zip(self.dims, steps, steps[1:], strict=False))
        if self.passes_end and not overlap:  # else copies need not use all that the map could reach
            yield f"dims and strides reach {self._end(self.dims)} B of an array of {self.array.nbytes} B"

    def _wrong_padding(self, size: int) -> Iterator[str]:
        """What breaks a rule for elements that TMA pads (PTX ISA 9.7.9.27.1.1; cuTensorMapEncodeTiled)."""
        row = 8 * self.padded  # bytes of 128 elements
        if self.padded not in (8, 12) or size != 1 or self.packed != 1:
            yield f"padded={self.padded} is neither 8 nor 12 of 16 bytes"
        if self.box[0] != row or self.dims[0] % row:
            yield f"padded elements need a box 128 wide, and a multiple of 128 in a row: {row} B"
        if any(number % 32 for number in (*self.strides, self.byte_offset)):
            yield "the address and the strides of padded elements are multiples of 32 B"
        if self.swizzle in (32, 64) or self.swizzle == "128_atom64" and self.padded == 8:
            yield f"swizzle {self.swizzle} does not go with padded elements"
        if self.fill == "nan":
            yield "padded elements have no NaN to fill with"

    def _end(self, ends: tuple[int, ...]) -> int:
        """Bytes of the array up to the last element before these coordinates."""
        return self.offset_of(tuple(end - 1 for end in ends)) + self.dtype.itemsize

    def offset_of(self, at: tuple[int, ...]) -> int:
        """Bytes of the array before the element at these coordinates."""
        steps = self.dtype.itemsize, *self.strides
        return self.byte_offset + sum(a * step for a, step in zip(at, steps, strict=True))

    @cached_property
    def passes_end(self) -> bool:
        """Whether some coordinates lie behind the array."""
        return self._end(self.dims) > self.array.nbytes

    def box_passes_end(self, start: tuple[int, ...]) -> bool:
        """Whether the part of a box that lies in the tensor does not lie in the array."""
        if not self.passes_end or self.misses(start):
            return False
        ends = tuple([min(s + b, d) for s, b, d in zip(start, self.box, self.dims, strict=True)])
        return self._end(ends) > self.array.nbytes

    @property
    def rank(self) -> int:
        return len(self.dims)

    @cached_property
    def box_bytes(self) -> int:
        """Bytes that one full box moves, without the padding."""
        count = 1
        for b, e in zip(self.box, self.element_strides, strict=True):
            count *= -(-b // e)
        return count * self.dtype.itemsize

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of one row of the box in shared memory."""
        row = -(-self.box[0] // self.element_strides[0]) * self.dtype.itemsize
        return row * 16 // self.padded if self.padded else row

    @cached_property
    def rows(self) -> int:
        """Number of rows of the box in shared memory."""
        return self.box_bytes * 16 // (self.padded or 16) // self.row_bytes

    def holds(self, start: tuple[int, ...]) -> bool:
        """Whether the box at `start` lies entirely inside the tensor."""
        for s, b, d in zip(start, self.box, self.dims, strict=True):  # noqa: SIM110  (called for every copy)
            if s < 0 or s + b > d:
                return False
        return True

    def misses(self, start: tuple[int, ...]) -> bool:
        """Whether the box at `start` lies entirely outside the tensor."""
        for s, b, d in zip(start, self.box, self.dims, strict=True):  # noqa: SIM110  (called for every copy)
            if s >= d or s + b <= 0:
                return True
        return False
