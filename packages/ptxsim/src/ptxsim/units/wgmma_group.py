"""wgmma in the main loop, for runs without observers in which work completes at once: the last of the four
warps to reach an instruction does it for all. The others wait for it; if one does not arrive, the handler
takes over.
"""

from __future__ import annotations

import numpy as np

from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit import bytecode
from ptxsim.jit.called import ParameterBlock, called
from ptxsim.jit.intrinsics import column, lane_value, mask_of, room_for_lanes
from ptxsim.jit.loop_batch import batch_state, set_batch_state
from ptxsim.jit.loop_memory import set_word, window, word
from ptxsim.units.registry import slots_of
from ptxsim.units.sparse_a import all_defined
from ptxsim.units.wgmma_form import decode_form
from ptxsim.units.wgmma_product import METADATA, MORE, WARPS, multiply, product_words

SCALE, A_AT, B_AT = MORE, MORE + 1, MORE + 2  # scale-d; slots of the descriptors
ALWAYS, NEVER = -1, -2  # in SCALE, for a constant scale-d; otherwise, SCALE is the code of a predicate


def fast_group(instr, args: tuple, unset) -> ParameterBlock:
    form = decode_form(instr)
    constant, metadata = getattr(instr.operands[form.scale], "bits", None), args[3] if form.sparse else -1
    scale = (ALWAYS if constant else NEVER) if constant is not None else args[form.scale].code
    a_slots, a_at = (args[1], 0) if form.in_registers else ((0,) * 4, args[1])
    return ParameterBlock(*product_words(form, a_slots, slots_of(args[0]), metadata), scale, a_at, args[2])


@inner
def _predicates(control, w):
    return np.uint64(word(control, bytecode.P_PTR) + w * word(control, bytecode.P_STRIDE))


@inner
def _standing(control, w, row):
    """The split of warp w that waits at the instruction of this row as a whole warp; -1 if there is none."""
    guard = mask_of(_predicates(control, w), column(row, bytecode.GUARD))
    for g in range(32 * w, 32 * w + 32):
        if batch_state(control, g) == bytecode.STANDS:
            split = word(control, bytecode.SP_PTR) + bytecode.SPLIT_BYTES * g
            here = word(control, bytecode.CODE_PTR) + bytecode.ROW_BYTES * word(split, bytecode.SP_PC)
            whole = word(split, bytecode.SP_MASK) & guard == bytecode.FULL
            return g if whole and np.uint64(here) == row else -1
    return -1


@inner
def _goes_on(control, g):
    split = word(control, bytecode.SP_PTR) + bytecode.SPLIT_BYTES * g
    set_word(split, bytecode.SP_PC, word(split, bytecode.SP_PC) + 1)
    set_word(control, bytecode.EXECUTED, word(control, bytecode.EXECUTED) + 1)
    set_batch_state(control, g, bytecode.MOVING)


@inner
def _multiply(control, block, first):
    """Computes the product for the four warps from `first` on; False if an operand is not legal."""
    files, accumulate, scale = np.int64(room_for_lanes()), 0, word(block, SCALE)
    for i in range(WARPS):
        w = first + i
        set_word(files, i, word(control, bytecode.R_PTR) + w * word(control, bytecode.R_STRIDE))
        if not all_defined(block + 8 * METADATA, np.uint64(word(files, i))):
            return False
        adds = scale == ALWAYS or scale >= 0 and mask_of(_predicates(control, w), scale) & 1
        accumulate |= (1 << i) if adds else 0
    registers, limit = np.uint64(word(files, 0)), word(control, bytecode.SHARED_LIMIT)
    shared = window(first // word(control, bytecode.WARPS_PER_CTA), control)
    a_bits = np.int64(lane_value(registers, word(block, A_AT), 0))
    b_bits = np.int64(lane_value(registers, word(block, B_AT), 0))
    return multiply(block, shared, limit, a_bits, b_bits, files, files, files, 0, accumulate)


@called
def whole_group(row, m, warp, registers, predicates, control):
    """wgmma.mma_async of four warps, of which the last one has just arrived."""
    block, per_cta = column(row, bytecode.CALLED_BLOCK), word(control, bytecode.WARPS_PER_CTA)
    first = warp - warp % per_cta % WARPS
    simple = m == bytecode.FULL and word(control, bytecode.EAGER) and word(control, bytecode.BATCH)
    if not simple or word(control, bytecode.MARKED) or first % per_cta + WARPS > per_cta:
        return 0
    for w in range(first, first + WARPS):
        if w != warp and _standing(control, w, row) < 0:
            return 0
    if not word(control, bytecode.DRY) and not _multiply(control, block, first):
        return 0
    for w in range(first, first + WARPS):
        if w != warp:
            _goes_on(control, _standing(control, w, row))
    set_word(control, bytecode.TENSOR_OPERATIONS, word(control, bytecode.TENSOR_OPERATIONS) + 1)
    return 1
