"""Moves the box of a tiled map between global and shared memory, in compiled code (PTX ISA 5.5).

A map is given by its words (`map_words`), a box by the coordinates of its first element, innermost first. In
shared memory, rows of the box are PITCH bytes apart and consist of 16-byte chunks that the swizzle permutes.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable as both

from ptxsim.isa.layouts.swizzle import SPAN, XORS, Mode
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.compiled import compiled
from ptxsim.jit.host import address_in_host
from ptxsim.jit.intrinsics import load8, load64, store8, store64
from ptxsim.jit.loop_memory import word
from ptxsim.machine.tensor_map import TensorMap

CHUNK = 16
AXES = 5
RANK, SIZE, ROWS, ROW_BYTES, BYTES, PITCH, MASK, SHIFT, ALIGN, FILL, OFFSET, PIECE = range(12)
# PIECE: bytes of a chunk in shared memory that hold elements; fewer than CHUNK if elements are padded
DIMS, STRIDES, BOX, STEPS, MAP_WORDS = (PIECE + 1 + AXES * i for i in range(5))
# Alignment of shared addresses in tensor copies: 128 B, or the swizzle pattern's size (PTX ISA 5.5.7)
ALIGNMENT: dict[Mode, int] = {0: 128, 32: 128, 64: 512, 128: 1024, "128_atom32": 512, "128_atom64": 256}
# The NaN that CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN writes, repeated to 8 bytes, by element size: an H200 fills
# with 0x7FF7 whatever the type (measured with float16 and float32)
_NANS = {
    1: 0x7F7F_7F7F_7F7F_7F7F,
    2: 0x7FF7_7FF7_7FF7_7FF7,
    4: 0x7FF7_7FF7_7FF7_7FF7,
    8: 0x7FF7_7FF7_7FF7_7FF7,
}


def swizzle_words(mode: Mode) -> tuple[int, int]:
    """MASK and SHIFT of a swizzle mode of TMA."""
    ((mask, shift),) = XORS[mode] or ((0, 0),)
    return mask, shift


def pitch_of(row_bytes: int, mode: Mode) -> int:
    """Bytes from one row of a box to the next in shared memory. A row narrower than the swizzle takes up the
    swizzle's width, as on an H200 (research/chip/im2col.py); the rest of that is not written.
    """
    return max(row_bytes, SPAN[mode])


def map_words(tmap: TensorMap) -> np.ndarray:
    """The words of a map for compiled code, int64 (MAP_WORDS,); cached in the map."""
    known = vars(tmap).get("_words")
    if known is None:
        size, row = tmap.dtype.itemsize, tmap.row_bytes
        numbers = [tmap.rank, size, tmap.rows, row, tmap.box_bytes, pitch_of(row, tmap.swizzle)]
        numbers += [*swizzle_words(tmap.swizzle), ALIGNMENT[tmap.swizzle]]
        numbers += [_NANS[size] if tmap.fill == "nan" else 0, tmap.byte_offset, tmap.padded or CHUNK]
        for values in (tmap.dims, (size, *tmap.strides), tmap.box, tmap.element_strides):
            numbers += [*values, *(0,) * (AXES - tmap.rank)]
        known = vars(tmap)["_words"] = np.array(numbers, np.int64)
    return known


@both
def chunk_place(offset, pitch, mask, shift, row, inner):
    """Offset in the window of byte `inner` of a row. Multiples of CHUNK map to multiples of CHUNK."""
    address = offset + row * pitch + inner
    return address ^ ((address >> shift) & mask)


@inner
def _row(tmap, start, number):
    """(byte offset of a row of the box from the tensor's first element, whether the row is in the tensor)."""
    distance, inside, rest = word(start, 0) * word(tmap, SIZE), True, number
    for axis in range(1, word(tmap, RANK)):
        step = word(tmap, STEPS + axis)
        count = (word(tmap, BOX + axis) + step - 1) // step
        position = word(start, axis) + rest % count * step
        rest //= count
        inside = inside and 0 <= position < word(tmap, DIMS + axis)
        distance += position * word(tmap, STRIDES + axis)
    return distance, inside


@inner
def _some_bytes(source, target, first, end):
    for i in range(first, end):
        store8(np.uint64(target + i), load8(np.uint64(source + i)))


@inner
def _chunk(source, target, first, end, size, fill, loads):
    """Copies bytes `first` to `end` (exclusive) of the `size` bytes of a chunk; a load sets the others to the
    fill value.
    """
    if first <= 0 and end >= size == CHUNK:
        low, high = load64(np.uint64(source)), load64(np.uint64(source + 8))
        store64(np.uint64(target), low)
        store64(np.uint64(target + 8), high)
        return
    if loads and (first > 0 or end < size):  # else the padding keeps what was there
        store64(np.uint64(target), np.uint64(fill))
        store64(np.uint64(target + 8), np.uint64(fill))
    _some_bytes(source, target, max(first, 0), min(end, size))


@inner
def move_box(tmap, tensor, start, window, offset, first, loads, linear):
    """Loads or stores a box. tensor: host address of the tensor's first element; window: host address of a
    CTA's shared memory; first: number of the box's first row there. linear: its rows there are contiguous,
    neither swizzled nor padded.
    """
    wide = word(tmap, BOX) * word(tmap, SIZE)
    pitch, size = (wide, CHUNK) if linear else (word(tmap, PITCH), word(tmap, PIECE))
    mask = 0 if linear else word(tmap, MASK)
    inner = word(start, 0)
    low = max(0, -inner) * word(tmap, SIZE)
    high = min(word(tmap, BOX), word(tmap, DIMS) - inner) * word(tmap, SIZE)
    for number in range(word(tmap, ROWS)):
        distance, inside = _row(tmap, start, number)
        end = high if inside else 0
        for chunk in range(wide // size):
            j, place = chunk * size, chunk * CHUNK
            here = window + chunk_place(offset, pitch, mask, word(tmap, SHIFT), first + number, place)
            far = tensor + distance + j
            if loads:
                _chunk(far, here, low - j, end - j, size, word(tmap, FILL), True)
            else:
                _chunk(here, far, low - j, end - j, size, 0, False)


@compiled()
def _move_now(tmap, tensor, start, window, offset, first, loads, linear):
    move_box(tmap, tensor, start, window, offset, first, loads, linear)


def move(
    tmap: TensorMap,
    start: tuple[int, ...],
    array: int,
    window: np.ndarray,
    at: tuple[int, int] | None,
    loads: bool,
) -> None:
    """`move_box` for calls from Python. array: host address of the tensor's array; at: (offset in the window,
    first row), or None for a window that holds only the rows of the box, contiguously.
    """
    words, place = map_words(tmap), np.array(start, np.int64)
    addresses = (
        address_in_host(words),
        array + tmap.byte_offset,
        address_in_host(place),
        address_in_host(window),
    )
    _move_now(*addresses, *(at or (0, 0)), loads, at is None)
