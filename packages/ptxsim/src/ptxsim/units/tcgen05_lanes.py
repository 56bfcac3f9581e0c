"""tcgen05.ld and st in the main loop, for runs without observers in which work completes at once.

Covers the usual case: a whole warp accesses its own lanes in allocated columns.
"""

from __future__ import annotations

import numpy as np

from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import M32
from ptxsim.isa.operands import MemArg
from ptxsim.jit import bytecode
from ptxsim.jit.called import ParameterBlock, called
from ptxsim.jit.intrinsics import column, lane_value, load32, set_lane_value, store32
from ptxsim.jit.loop_memory import word
from ptxsim.machine.tensor_memory import COLUMNS, NEVER_WRITTEN

# words of a block; CELLS: array (parts, registers, 32) of offsets from the cell at the address, row-major
ADDRESS, OFFSET, STORES, PARTS, REGISTERS, SLOTS, CELLS, LAST_LANE, LAST_COLUMN = range(9)
HALF = np.uint64(0xFFFF)


@inner
def first_cell(control, warp, address, last_lane, last_column):
    """The row-major index of the cell at an address; -1 unless the warp may access all cells up to
    `last_lane` and `last_column` after it.
    """
    cta, number = warp // word(control, bytecode.WARPS_PER_CTA), warp % word(control, bytecode.WARPS_PER_CTA)
    lane, first, quarter = address >> 16, address & 0xFFFF, 32 * (number % 4)
    own = lane >> 5 << 5 == 0 or lane >> 5 << 5 == quarter  # lane 0 is the first that the warp can reach
    if address == NEVER_WRITTEN or not own or (lane & 31) + last_lane > 31 or first + last_column >= COLUMNS:
        return np.int64(-1)
    owner = word(word(control, bytecode.TMEM_PTR), bytecode.TM_COLUMNS * cta + bytecode.TM_OWNER)
    for i in range(first, first + last_column + 1):
        if np.int32(load32(np.uint64(owner + 4 * i))) <= 0:
            return np.int64(-1)
    return (quarter + (lane & 31)) * COLUMNS + first


@inner
def _cell(cells, block, part, number, lane):
    index = (part * word(block, REGISTERS) + number) * 32 + lane
    return np.uint64(cells + 4 * word(word(block, CELLS), index))


@called
def move_cells(row, m, warp, registers, predicates, control):
    """tcgen05.ld and st (PTX ISA 9.7.16.8). In a register with two columns, the first is the low half."""
    block = column(row, bytecode.CALLED_BLOCK)
    if m != bytecode.FULL or not word(control, bytecode.EAGER):
        return 0
    address = np.int64(lane_value(registers, word(block, ADDRESS), 0)) + word(block, OFFSET)
    last = word(block, LAST_LANE), word(block, LAST_COLUMN)
    first = first_cell(control, warp, address & np.int64(M32), *last)
    if first < 0:
        return 0
    cta, halves = warp // word(control, bytecode.WARPS_PER_CTA), word(block, PARTS) == 2
    table = word(control, bytecode.TMEM_PTR)
    cells = word(table, bytecode.TM_COLUMNS * cta + bytecode.TM_CELLS) + 4 * first
    for number in range(word(block, REGISTERS)):
        slot = word(word(block, SLOTS), number)
        for l in range(32):
            low = _cell(cells, block, 0, number, l)
            if word(block, STORES):
                value = lane_value(registers, slot, l) & M32
                store32(low, value & HALF if halves else value)
                if halves:
                    store32(_cell(cells, block, 1, number, l), value >> np.uint64(16))
            else:
                value = load32(low)
                if halves:
                    high = load32(_cell(cells, block, 1, number, l))
                    value = (value & HALF) | (high & HALF) << np.uint64(16)
                set_lane_value(registers, slot, l, value)
    return 1


def cells_block(address: MemArg, stores: bool, slots: np.ndarray, layout: tuple) -> ParameterBlock | None:
    """The parameters of `move_cells`, or None. layout: (lane, column) of each register relative to the
    address, (registers, 32) or (2, registers, 32) each.
    """
    lanes, columns = np.broadcast_arrays(*layout)
    parts = lanes.shape[0] if lanes.ndim == 3 else 1
    cells = np.ascontiguousarray(lanes * COLUMNS + columns, np.int64)
    if (slots < 0).any():
        return None
    ends = int(lanes.max()), int(columns.max())
    return ParameterBlock(
        *(address.slot, address.offset, stores, parts, len(slots)), slots.astype(np.int64), cells, *ends
    )
