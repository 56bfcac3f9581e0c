"""Scale factors of mma.sync with .block_scale (PTX ISA 9.7.14.3): each multiplies a part of a row of A or
of a column of B.

A factor is a byte of a register; byte-id names the first of a row. Those of A are in two threads of each
group of four, the pair that thread-id names: rows g and g + 8 of group g. Those of column g are in the thread
of group g that thread-id names. PTX has this in figures 43-48; CUTLASS's layouts (SFALayout) say the same.
"""

from __future__ import annotations

import numpy as np

from ptxsim.isa.mathlib.floating import as_f32
from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.number_formats import SCALES
from ptxsim.jit.intrinsics import lane_value, load32
from ptxsim.jit.loop_memory import word
from ptxsim.units.mma_form import MmaForm
from ptxsim.units.registry import slots_of

FACTORS, TABLE, SCALE_SLOTS, SCALE_WORDS = range(4)


def scale_words(form: MmaForm, args) -> tuple:
    """SCALE_WORDS words of a ParameterBlock. args: the resolved operands."""
    if not form.factors:
        return (0,) * SCALE_WORDS
    slots = [slot for operand in args[-4:] for slot in slots_of(operand)]
    table = SCALES[form.scale](np.arange(256, dtype=np.uint8))
    return form.factors, table, np.array(slots, np.int64)


@inner
def apply_scales(block, registers, matrix, first, count, k, across, along):
    """Multiplies a matrix (float64) by its factors. first: 0 for A, 3 for B, whose `count` rows or columns
    are `across` elements apart; `along`: between elements along K.
    """
    slots, factors = word(block, SCALE_SLOTS), word(block, FACTORS)
    data, byte = word(slots, first), lane_value(registers, word(slots, first + 1), 0)
    thread, part = np.int64(lane_value(registers, word(slots, first + 2), 0)), k // factors
    for i in range(count):
        lane = i % 8 * 4 + ((thread & 1) * 2 + i // 8 if first == 0 else thread & 3)
        raw = lane_value(registers, data, lane)
        for f in range(factors):
            place = (byte + np.uint64(f) & np.uint64(3)) * np.uint64(8)
            at = np.uint64(word(block, TABLE)) + np.uint64(4) * (raw >> place & np.uint64(255))
            factor = np.float64(as_f32(load32(at)))
            for s in range(f * part, (f + 1) * part):
                matrix[i * across + s * along] *= factor
