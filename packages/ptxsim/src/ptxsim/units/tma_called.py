"""Tensor copies in the main loop, for runs without observers in which work completes at once.

Covers the usual case: one thread copies a box by a known tiled map. All else is left to the handler.
"""

from __future__ import annotations

import numpy as np

from ptxsim.isa.address_map import WINDOW_MASK
from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import M32
from ptxsim.isa.operands import MemArg
from ptxsim.jit import bytecode
from ptxsim.jit.called import ParameterBlock, called
from ptxsim.jit.intrinsics import column, lane_value, room_for_lanes
from ptxsim.jit.loop_batch import lowest_lane
from ptxsim.jit.loop_memory import segment_of, set_word, window, word
from ptxsim.jit.translate import in_window, shared_address, shared_place
from ptxsim.machine.map_table import (
    CP_COLUMNS,
    CP_MAP,
    CP_START,
    CP_STORES,
    MT_ADDRESS,
    MT_BYTES,
    MT_COLUMNS,
    MT_SEGMENT,
    MT_WORDS,
    ROOM,
)
from ptxsim.machine.mbarrier import MAX_COUNT, move_tx
from ptxsim.machine.tensor_box import ALIGN, AXES, BYTES, OFFSET, PITCH, RANK, ROWS, SIZE, move_box
from ptxsim.machine.tensor_map import MAP_BYTES
from ptxsim.units.mbarrier_lanes import barrier_at, changed

UNIT = 16  # bytes; granularity of TMA along the innermost dimension
# words of a block; each address takes two, slot and offset; -1: no barrier, no mask
PLACE, MAP, BARRIER, MASK, PAIR, STORES, COUNT, COORDINATES = 0, 2, 4, 6, 7, 8, 9, 10


@inner
def _operand(block, registers, lane, number):
    return np.int64(lane_value(registers, word(block, number), lane)) + word(block, number + 1)


@inner
def _known_map(control, address):
    """The row number of the map whose bytes are at an address; -1 if it is not known."""
    row = word(control, bytecode.MAPS_PTR)
    for number in range(word(control, bytecode.MAPS)):
        if word(row, MT_ADDRESS) == address:
            segment = segment_of(control, address, MAP_BYTES)
            if segment == 0:
                return -1
            here = word(segment, bytecode.SEG_HOST) + address - word(segment, bytecode.SEG_BASE)
            for i in range(MAP_BYTES // 8):
                if word(here, i) != word(row, MT_BYTES + i):
                    return -1
            return number
        row += 8 * MT_COLUMNS
    return -1


@inner
def _coordinates(block, registers, lane, start):
    for axis in range(word(block, COUNT)):
        value = np.int64(lane_value(registers, word(block, COORDINATES + axis), lane) & M32)
        set_word(start, axis, value - (value >> 31 << 32))


@inner
def _legal(control, tmap, block, start, place):
    """Whether the coordinates of a box and its place in shared memory are legal, so no finding is due."""
    rank, offset = shared_place(place)
    size = word(tmap, ROWS) * word(tmap, PITCH)
    if word(block, COUNT) != word(tmap, RANK) or rank >= word(control, bytecode.CLUSTER_SIZE):
        return False
    inside = in_window(offset, size, word(control, bytecode.SHARED_LIMIT))
    return inside and offset % word(tmap, ALIGN) == 0 and word(start, 0) * word(tmap, SIZE) % UNIT == 0


@inner
def _note(control, stores, number, start):
    """Adds a copy to the list that Python reads."""
    n = word(control, bytecode.COPIES)
    entry = word(control, bytecode.COPIES_PTR) + 8 * CP_COLUMNS * n
    set_word(entry, CP_STORES, stores)
    set_word(entry, CP_MAP, number)
    for axis in range(AXES):
        set_word(entry, CP_START + axis, word(start, axis))
    set_word(control, bytecode.COPIES, n + 1)
    set_word(control, bytecode.CHANGED, word(control, bytecode.CHANGED) + 1)


@inner
def _tensor(control, row, tmap):
    """The host address of the first element of a map's tensor."""
    segment = word(control, bytecode.SEG_PTR) + bytecode.SEG_BYTES * word(row, MT_SEGMENT)
    return word(segment, bytecode.SEG_HOST) + word(tmap, OFFSET)


@inner
def _simple(m, control):
    alone = m & (m - 1) == 0
    return alone and word(control, bytecode.EAGER) != 0 and word(control, bytecode.COPIES) < ROOM


@inner
def _signalled(block, rank, barrier):
    """The place of the barrier that counts the bytes in CTA `rank`. barrier: the instruction's operand."""
    named, offset = shared_place(barrier)
    if word(block, MASK) < 0:
        return barrier
    return shared_address((rank & ~1) | (named & 1) if word(block, PAIR) else rank, offset)


@inner
def _targets(block, registers, lane, rank, control):
    """The mask of the CTAs that a load writes to."""
    if word(block, MASK) < 0:
        return np.int64(1) << rank
    mask = np.int64(lane_value(registers, word(block, MASK), lane))
    return mask & ((np.int64(1) << word(control, bytecode.CLUSTER_SIZE)) - 1)


@inner
def _all_expect(control, block, targets, named, size):
    """Whether each target CTA has a barrier that can count the bytes."""
    for rank in range(word(control, bytecode.CLUSTER_SIZE)):
        if (targets >> rank) & 1:
            barrier = barrier_at(control, _signalled(block, rank, named))
            # two CTAs of a pair may signal one barrier
            if barrier == 0 or word(barrier, bytecode.MB_TX) - 2 * size < -MAX_COUNT:
                return False
    return True


@inner
def _load(control, block, registers, lane, rank, tmap, start, tensor, offset):
    """Loads a box to shared memory; False if the handler must do it."""
    named = _operand(block, registers, lane, BARRIER) & WINDOW_MASK
    size, targets = word(tmap, BYTES), _targets(block, registers, lane, rank, control)
    there = shared_place(named)[0]
    own = there == rank or word(block, PAIR) and there >> 1 == rank >> 1
    if not (own or word(block, MASK) >= 0) or not _all_expect(control, block, targets, named, size):
        return False
    for target in range(word(control, bytecode.CLUSTER_SIZE)):
        if (targets >> target) & 1:
            move_box(tmap, tensor, start, window(target, control), offset, 0, True, False)
    for target in range(word(control, bytecode.CLUSTER_SIZE)):
        if (targets >> target) & 1:
            barrier = barrier_at(control, _signalled(block, target, named))
            move_tx(barrier, -size)
            changed(control, barrier)
    return True


@inner
def _store(control, rank, tmap, start, tensor, offset):
    """Stores a box to global memory at once: its bulk group stays empty. False if the handler must do it."""
    for axis in range(word(tmap, RANK)):
        if word(start, axis) < 0:
            return False
    move_box(tmap, tensor, start, window(rank, control), offset, 0, False, False)
    return True


@called
def copy_box(row, m, warp, registers, predicates, control):
    """cp.async.bulk.tensor of one thread (PTX ISA 9.7.9.27.1.2)."""
    block, lane, start = column(row, bytecode.CALLED_BLOCK), lowest_lane(m), np.int64(room_for_lanes())
    number = _known_map(control, _operand(block, registers, lane, MAP)) if _simple(m, control) else -1
    if number < 0:
        return 0
    known = word(control, bytecode.MAPS_PTR) + 8 * MT_COLUMNS * number
    tmap, place = word(known, MT_WORDS), _operand(block, registers, lane, PLACE) & WINDOW_MASK
    _coordinates(block, registers, lane, start)
    if not _legal(control, tmap, block, start, place):
        return 0
    (rank, offset), tensor = shared_place(place), _tensor(control, known, tmap)
    if word(block, STORES):
        done = _store(control, rank, tmap, start, tensor, offset)
    else:
        done = _load(control, block, registers, lane, rank, tmap, start, tensor, offset)
    if done:
        _note(control, word(block, STORES), number, start)
    return int(done)


def fast_copy(instr, args: tuple, unset) -> ParameterBlock | None:
    """The ParameterBlock of a tiled copy, but not of .tile::gather4 or scatter4."""
    mods = set(instr.mods)
    if any(m.startswith(("im2col", "tile::")) for m in mods):
        return None
    stores = "bulk_group" in mods
    tensor, place = args[:2] if stores else (args[1], args[0])
    bar = (-1, 0) if stores else (args[2].slot, args[2].offset)
    mask = args[3] if "multicast::cluster" in mods else -1
    (slots,) = tensor.parts
    pair = "cta_group::2" in mods
    return ParameterBlock(*_address(place), *_address(tensor), *bar, mask, pair, stores, len(slots), *slots)


def _address(arg: MemArg) -> tuple[int, int]:
    return arg.slot, arg.offset
