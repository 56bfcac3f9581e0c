"""The main loop: runs splits (lanes of a warp at the same instruction) until something outside is needed.

This file is a template: `jit/codegen.py` replaces the marked lines by functions for scalar operations and
calls of them, writes the result to the cache directory and imports it there. Column and reason numbers come
from `jit/bytecode.py`.

Arrays: code (rows, COLUMNS), lists, SP (splits, ..), G (groups, ..), SEG (segments, ..), CT (CTAs, ..), LOG
(capacity, 4), CTL control words. `registers` and `predicates` are addresses of the warp's files: uint64
(slots, 32) and int64 masks.
"""

# ruff: noqa: F405, F841, SIM109
import numpy as np
from numba import carray, njit, types

from ptxsim.isa.address_map import *  # noqa: F403
from ptxsim.isa.mathlib.all import *  # noqa: F403
from ptxsim.jit.bytecode import *  # noqa: F403
from ptxsim.jit.intrinsics import *  # noqa: F403
from ptxsim.jit.loop_batch import issue, next_split, retry_standing, settle_split
from ptxsim.jit.loop_divergence import branch_index, diverge, join, leave
from ptxsim.jit.loop_memory import (
    access_size,
    load_lanes,
    load_warp,
    log_warp,
    reach,
    set_word,
    store_lanes,
    store_warp,
    word,
)
from ptxsim.jit.simd_scalar import vector_operation  # noqa: F401

# {{functions}}


@njit
def fast_unit(c, m, g, pc, lists, registers, predicates, rank, control):
    """Does the unit instruction of row `c` for the lanes in m; False: its handler must."""
    done = False
    kind = c[AUX]
    if kind == FAST_ISSUE:
        done = issue(c, m, g, pc, lists, registers, predicates, control)
    # {{fast: each}}
    set_word(control, FAST_DONE, word(control, FAST_DONE) + done)
    return done


@njit
def fast_together(control):
    """What all splits that stand can do together, as at a CTA barrier; whether one moved."""
    moved = False
    # {{fast: together}}
    set_word(control, FAST_DONE, word(control, FAST_DONE) + moved)
    return moved


@njit
def run_split(control):
    """Runs split CTL[SPLIT] for at most CTL[BUDGET] instructions; the reason it stopped.

    control: address of the control words, which hold the addresses and sizes of all other arrays.
    """
    CTL = carray(pointer(control), (CONTROL_WORDS,), dtype=np.int64)
    code = carray(pointer(CTL[CODE_PTR]), (CTL[ROWS], COLUMNS), dtype=np.int64)
    lists = carray(pointer(CTL[LISTS_PTR]), (CTL[LISTS],), dtype=np.int32)
    SP = carray(pointer(CTL[SP_PTR]), (CTL[SPLITS], SPLIT_COLUMNS), dtype=np.int64)
    G = carray(pointer(CTL[G_PTR]), (CTL[SPLITS], GROUP_COLUMNS), dtype=np.int64)
    SEG = carray(pointer(CTL[SEG_PTR]), (CTL[SEGMENTS], SEG_COLUMNS), dtype=np.int64)
    CT = carray(pointer(CTL[CT_PTR]), (CTL[CLUSTER_SIZE], CT_COLUMNS), dtype=np.int64)
    LOG = carray(pointer(CTL[LOG_PTR]), (CTL[LOG_ROOM], LOG_COLUMNS), dtype=np.int64)
    g = CTL[SPLIT]
    w = SP[g, SP_WARP]
    cta = w // CTL[WARPS_PER_CTA]
    pc = SP[g, SP_PC]
    mask = SP[g, SP_MASK]
    left = CTL[BUDGET]
    registers = np.uint64(CTL[R_PTR] + w * CTL[R_STRIDE])
    predicates = np.uint64(CTL[P_PTR] + w * CTL[P_STRIDE])
    log_room = CTL[LOG_ROOM] - 32
    observed = CTL[LOG_ON] != 0
    reason = REASON_BUDGET
    while left > 0 and CTL[NEW_COUNT] < 24:
        left -= 1
        c = code[pc]
        row = np.uint64(CTL[CODE_PTR] + pc * ROW_BYTES)
        guard = c[GUARD]
        m = mask & mask_of(predicates, guard)
        op = c[OP]
        if op == BRA:
            if m == 0:
                pc += 1
            elif m == mask:
                pc = c[IMM]
            else:
                diverge(SP, G, CTL, g, m, mask & ~m, c[IMM], pc + 1, c[RPC])
                pc += 1
                mask = SP[g, SP_MASK]
            continue
        elif op == LD or op == ST:
            distance = reach(row, access_size(row), cta, registers, control) if m == FULL and c[F] else 0
            if distance != 0:
                if observed:
                    log_warp(row, pc, w * 32, int(op == ST), distance, registers, control)
                if op == LD:
                    load_warp(row, distance, registers, control)
                else:
                    store_warp(row, distance, registers, control)
            elif op == LD:
                load_lanes(c, m, w, cta, lists, registers, SEG, CT, LOG, CTL, pc)
            else:
                store_lanes(c, m, w, cta, lists, registers, SEG, CT, LOG, CTL, pc)
            pc += 1
            if CTL[FAULTS] != 0 or CTL[LOG_USED] > log_room:
                reason = REASON_FAULT
                break
            continue
        elif op == UNIT or op == COLD:
            if m == 0 or (c[AUX] == ONLY_OBSERVED and not observed and op == UNIT):
                pc += 1
                continue
            fast = op == UNIT and c[AUX] > ONLY_OBSERVED and (not observed or c[AUX] == FAST_ISSUE)
            if fast and fast_unit(c, m, g, pc, lists, registers, predicates, CT[cta, CT_RANK], control):
                pc += 1
                continue
            CTL[UNIT_MASK] = m
            reason = REASON_UNIT if op == UNIT else REASON_COLD
            break
        elif op == JOIN:
            SP[g, SP_PC] = pc
            SP[g, SP_MASK] = mask
            if not join(SP, G, g, pc):
                CTL[EXECUTED] += CTL[BUDGET] - left
                return REASON_GONE
            mask = SP[g, SP_MASK]
            pc += 1
            continue
        elif op == EXIT:
            if m == mask:
                SP[g, SP_MASK] = mask
                if leave(SP, G, g):
                    CTL[EXECUTED] += CTL[BUDGET] - left
                    CTL[EXITED] |= m
                    return REASON_EXIT
                CTL[EXITED] |= m
                pc = SP[g, SP_PC]
                mask = SP[g, SP_MASK]
            elif m != 0:
                diverge(SP, G, CTL, g, m, mask & ~m, pc, pc + 1, -1)
                mask = SP[g, SP_MASK]
                pc += 1
            else:
                pc += 1
            continue
        elif op == BRX:
            SP[g, SP_MASK] = mask
            if m != 0 and not branch_index(c, m, w, g, pc, lists, registers, SP, G, CTL):
                reason = REASON_BAD_INDEX
                break
            mask = SP[g, SP_MASK]
            pc = SP[g, SP_PC] if m != 0 else pc + 1
            continue
        # {{scalar}}
        pc += 1
    CTL[EXECUTED] += CTL[BUDGET] - left
    SP[g, SP_PC] = pc
    SP[g, SP_MASK] = mask
    return reason


@njit(types.int64(types.int64), nogil=True, cache=True)
def run(control):
    """Runs split CTL[SPLIT]; if there is a batch, its splits in turn, until all of them stand (REASON_STANDS)
    or one, then CTL[SPLIT], needs Python at once. Returns the reason it stopped.
    """
    batch = word(control, BATCH) != 0
    if batch:
        retry_standing(control)
    together = 0
    while True:
        if batch and not next_split(control):
            together += 1
            if together < MOST_TOGETHER and fast_together(control):
                continue
            return REASON_STANDS
        reason = run_split(control)
        if not batch or not settle_split(control, reason):
            return reason
