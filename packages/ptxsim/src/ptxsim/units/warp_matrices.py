"""ldmatrix, stmatrix, wmma.load and wmma.store in the main loop: rows of up to 16 bytes in memory to or from
the registers of a warp. Illegal and unusual cases are left to their handlers.
"""

from __future__ import annotations

import numpy as np

from ptxsim.isa.address_map import SPACE_GLOBAL, SPACE_LOCAL
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.bytecode import CALLED_BLOCK, FULL, SEG_BASE, SEG_HOST, WARPS_PER_CTA
from ptxsim.jit.called import called
from ptxsim.jit.intrinsics import column, lane_value, load32, room_for_rows, set_lane_value, store32
from ptxsim.jit.loop_batch import same_in_all
from ptxsim.jit.loop_memory import (
    own_offset,
    read_element,
    segment_of,
    set_word,
    window,
    within,
    word,
    write_element,
)
from ptxsim.jit.translate import resolve

SPACE, ROWS, SIZE, ROW_BITS, WIDTH, ELEMENTS, ADDRESS, OFFSET, SLOTS, SHIFTS, PLACES, LINE_WORDS = range(12)
LINE_OF, BYTE_OF, LINE, STRIDE, FRAGMENT, BITS = range(LINE_WORDS, LINE_WORDS + 6)
ROW = 16  # bytes


def matrix_words(space: int, rows: int, size: int, places: np.ndarray, width: int, slots, address) -> tuple:
    """The first words of a Block. places: int64 (32, elements), byte offsets from the first row; elements
    have `width` bytes, rows have `size`.
    """
    per, count = max(1, 4 // width), places.shape[1]
    held = np.array(slots, np.int64)[np.arange(count) // per]
    shifts = np.arange(count) % per * 8 * width
    across = np.ascontiguousarray(places.T)
    form = space, rows, size, size.bit_length() - 1, width, count
    return *form, address.slot, address.offset, held, shifts, across


@inner
def _rows_of_lanes(block, cta, registers, hosts, control):
    """Fills in host addresses of the rows that the first lanes point to; False if one is not legal."""
    shared = window(cta, control)
    for i in range(word(block, ROWS)):
        address = np.int64(lane_value(registers, word(block, ADDRESS), i)) + word(block, OFFSET)
        offset = own_offset(address, ROW, word(block, SPACE), cta, control)
        if offset < 0:
            return False
        set_word(hosts, i, shared + offset)
    return True


@inner
def _start_and_step(block, store, registers):
    """(address of the first line, bytes to the next) of a fragment; step 0 if they are not legal, or not the
    same in all lanes.
    """
    address, stride = word(block, ADDRESS), word(block, STRIDE)
    if not same_in_all(registers, address, FULL) or (
        stride >= 0 and not same_in_all(registers, stride, FULL)
    ):
        return 0, 0
    start, step = np.int64(lane_value(registers, address, 0)) + word(block, OFFSET), word(block, LINE)
    if stride >= 0:
        step = np.int64(lane_value(registers, stride, 0) & np.uint64(0xFFFF_FFFF)) * word(block, BITS) // 8
    needed = min(ROW, word(block, FRAGMENT))
    if start % word(block, FRAGMENT) or step % needed or (store and step < word(block, LINE)):
        return 0, 0
    return start, step


@inner
def _rows_of_lines(block, store, cta, registers, hosts, control):
    """Fills in host addresses of the rows of a fragment, from start and stride; False if not legal."""
    start, step = _start_and_step(block, store, registers)
    space, _ = resolve(word(block, SPACE), start)
    if step == 0 or space == SPACE_LOCAL:
        return False
    size, shared = word(block, SIZE), window(cta, control)
    segment = segment_of(control, start, size) if space == SPACE_GLOBAL else 0
    if space == SPACE_GLOBAL and segment == 0:
        return False
    for i in range(word(block, ROWS)):
        address = start + word(word(block, LINE_OF), i) * step + word(word(block, BYTE_OF), i)
        if space == SPACE_GLOBAL:
            if not within(segment, address, size):
                return False
            set_word(hosts, i, address - word(segment, SEG_BASE) + word(segment, SEG_HOST))
        else:
            offset = own_offset(address, size, word(block, SPACE), cta, control)
            if offset < 0:
                return False
            set_word(hosts, i, shared + offset)
    return True


@inner
def _find_rows(row, m, store, warp, registers, hosts, control):
    """Whether the main loop can access all rows of an instruction; fills in their host addresses."""
    block = column(row, CALLED_BLOCK)
    if m != FULL:
        return False
    cta = warp // word(control, WARPS_PER_CTA)
    if word(block, LINE_OF) == 0:
        return _rows_of_lanes(block, cta, registers, hosts, control)
    return _rows_of_lines(block, store, cta, registers, hosts, control)


@inner
def _host_of(hosts, at, shift):
    """The host address of byte `at` of the rows, which have 1 << shift bytes each."""
    return word(hosts, at >> shift) + (at & (1 << shift) - 1)


@called
def load_rows(row, m, warp, registers, predicates, control):
    """ldmatrix and wmma.load of a whole warp."""
    block, hosts = column(row, CALLED_BLOCK), np.int64(room_for_rows())
    if not _find_rows(row, m, False, warp, registers, hosts, control):
        return 0
    row_bits, width, places = word(block, ROW_BITS), word(block, WIDTH), word(block, PLACES)
    for e in range(word(block, ELEMENTS)):
        slot, shift = word(word(block, SLOTS), e), np.uint64(word(word(block, SHIFTS), e))
        for l in range(32):
            host = _host_of(hosts, word(places, 32 * e + l), row_bits)
            value = read_element(host, width, 0) << shift
            set_lane_value(registers, slot, l, value | lane_value(registers, slot, l) if shift else value)
    return 1


@called
def store_rows(row, m, warp, registers, predicates, control):
    """stmatrix and wmma.store of a whole warp."""
    block, hosts = column(row, CALLED_BLOCK), np.int64(room_for_rows())
    if not _find_rows(row, m, True, warp, registers, hosts, control):
        return 0
    stored, size, width = np.int64(room_for_rows()), word(block, SIZE), word(block, WIDTH)
    for e in range(word(block, ELEMENTS)):
        slot, shift = word(word(block, SLOTS), e), np.uint64(word(word(block, SHIFTS), e))
        for l in range(32):
            value = lane_value(registers, slot, l) >> shift
            write_element(stored + word(word(block, PLACES), 32 * e + l), width, value)
    for i in range(word(block, ROWS)):
        for b in range(0, size, 4):
            store32(np.uint64(word(hosts, i) + b), load32(np.uint64(stored + i * size + b)))
    return 1
