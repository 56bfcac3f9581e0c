"""The main loop: runs splits (lanes of a warp at the same instruction) until Python is needed.

This file is a template: `jit/codegen.py` replaces the marked lines by functions for scalar operations and
calls of them, writes the result to the cache directory and imports it from there. Column and reason numbers
are those of `jit/bytecode.py`.

Arrays: code (rows, COLUMNS), lists, splits (splits, ..), groups (groups, ..), segments (segments, ..), ctas
(CTAs, ..), log (capacity, 4), and words, the control words. `registers` and `predicates` are addresses of the
warp's files: uint64 (slots, 32) and int64 masks.
"""

# ruff: noqa: F405, F841, SIM109
# pyright: reportUndefinedVariable=false
# ruff and pyright cannot see the names that bytecode._publish defines; numba refuses names that do not exist
from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import carray

from ptxsim.isa.address_map import *  # noqa: F403
from ptxsim.isa.mathlib.all import *  # noqa: F403
from ptxsim.isa.mathlib.inner import WHOLE, inner
from ptxsim.jit.bytecode import *  # noqa: F403
from ptxsim.jit.compiled import generated
from ptxsim.jit.intrinsics import *  # noqa: F403
from ptxsim.jit.loop_batch import issue, next_split, retry_happened, retry_standing, settle_split
from ptxsim.jit.loop_divergence import arrive_early, branch_index, diverge, follow, join, leave
from ptxsim.jit.loop_lanes import load_lanes, store_lanes
from ptxsim.jit.loop_log import log_simple
from ptxsim.jit.loop_memory import (
    OWN,
    access_size,
    load_some,
    load_warp,
    reach,
    set_word,
    step_of,
    store_some,
    store_warp,
    word,
)
from ptxsim.jit.simd_scalar import vector_operation  # noqa: F401

# {{functions}}


@inner
def fast_unit(c, row, m, w, g, pc, lists, registers, predicates, rank, control):
    """Executes the unit instruction of row `c`, at address `row`, for the lanes in m. Returns False if its
    handler has to do it.
    """
    done = False
    kind = c[UNIT_FORM]
    observed = word(control, LOG_ON) != 0
    in_place = observed and (m != FULL or word(control, ISSUES) == 0)
    either = kind == FAST_EITHER
    if (either or kind == FAST_CALLED) and not (in_place or observed and c[CALLED_HEARD] == 0):
        done = call_unit(c[IMM], row, m, w, registers, predicates, control) != 0
    if kind == FAST_ISSUE or either and not done:
        done = issue(c, m, g, pc, lists, registers, predicates, control)
    # {{fast: each}}
    set_word(control, FAST_DONE, word(control, FAST_DONE) + done)
    return done


@inner
def fast_together(control):
    """Executes what all waiting splits can do together, such as a CTA barrier; returns whether one moved."""
    moved = False
    # {{fast: together}}
    set_word(control, FAST_DONE, word(control, FAST_DONE) + moved)
    return moved


@inner
def run_split(control):
    """Runs split words[SPLIT] for at most words[BUDGET] instructions; returns the reason why it stopped.

    control: address of the control words, which hold the addresses and sizes of all other arrays.
    """
    words: Any = carray(pointer(control), (CONTROL_WORDS,), dtype=np.int64)
    code: Any = carray(pointer(words[CODE_PTR]), (words[ROWS], COLUMNS), dtype=np.int64)
    lists: Any = carray(pointer(words[LISTS_PTR]), (words[LISTS],), dtype=np.int32)
    splits: Any = carray(pointer(words[SP_PTR]), (words[SPLITS], SPLIT_COLUMNS), dtype=np.int64)
    groups: Any = carray(pointer(words[G_PTR]), (words[SPLITS], GROUP_COLUMNS), dtype=np.int64)
    segments: Any = carray(pointer(words[SEG_PTR]), (words[SEGMENTS], SEG_COLUMNS), dtype=np.int64)
    ctas: Any = carray(pointer(words[CT_PTR]), (words[CLUSTER_SIZE], CT_COLUMNS), dtype=np.int64)
    log: Any = carray(pointer(words[LOG_PTR]), (words[LOG_ROOM], LOG_COLUMNS), dtype=np.int64)
    g = words[SPLIT]
    w = splits[g, SP_WARP]
    cta = w // words[WARPS_PER_CTA]
    pc = splits[g, SP_PC]
    mask = splits[g, SP_MASK]
    left = words[BUDGET]
    registers = np.uint64(words[R_PTR] + w * words[R_STRIDE])
    predicates = np.uint64(words[P_PTR] + w * words[P_STRIDE])
    log_room = words[LOG_ROOM] - 32
    observed = words[LOG_ON] != 0
    reason = REASON_BUDGET
    while left > 0 and words[NEW_COUNT] < 24:
        left -= 1
        c = code[pc]
        row = np.uint64(words[CODE_PTR] + pc * ROW_BYTES)
        guard = c[GUARD]
        m = mask & mask_of(predicates, guard)
        op = c[OP]
        if op == BRA:
            if m == 0:
                pc += 1
            elif m == mask:
                pc = c[IMM]
            elif c[BRA_EARLY] == TAKEN:
                arrive_early(splits, groups, g, mask, m, c[IMM])
                mask &= ~m
                left -= 1
                pc += 1
            elif c[BRA_EARLY] == OTHERS:
                arrive_early(splits, groups, g, mask, mask & ~m, pc + 1)
                mask = m
                left -= 1
                pc = c[IMM]
            else:
                diverge(splits, groups, words, g, m, mask & ~m, c[IMM], pc + 1, c[REJOIN])
                pc += 1
                mask = splits[g, SP_MASK]
            continue
        elif op == LD or op == ST:
            if m == 0:
                pc += 1
                continue
            distance = reach(row, access_size(row), m, w, cta, registers, control)
            write = int(op == ST)
            if observed and distance and not log_simple(row, pc, m, w, write, distance, registers, control):
                distance = 0
            if distance != 0 and m == FULL and c[ACCESS_WHOLE] and words[PLACE] != OWN:
                if op == LD:
                    load_warp(row, distance, registers, control)
                else:
                    store_warp(row, distance, registers, control)
            elif distance != 0 and op == LD:
                load_some(row, m, distance, step_of(control), registers, control)
            elif distance != 0:
                store_some(row, m, distance, step_of(control), registers, control)
            elif op == LD:
                load_lanes(c, m, w, cta, lists, registers, segments, ctas, log, words, pc)
            else:
                store_lanes(c, m, w, cta, lists, registers, segments, ctas, log, words, pc, row, control)
            pc += 1
            if words[FAULTS] != 0 or words[LOG_USED] > log_room:
                reason = REASON_FAULT
                break
            continue
        elif op == CALL:
            call_operation(c[IMM], row, m, registers, predicates)
            pc += 1
            continue
        elif op == UNIT or op == COLD:
            form = c[UNIT_FORM]
            if m == 0 or (form == ONLY_OBSERVED and not observed and op == UNIT):
                pc += 1
                continue
            fast = op == UNIT and form > ONLY_OBSERVED
            rank = ctas[cta, CT_RANK]
            if fast and fast_unit(c, row, m, w, g, pc, lists, registers, predicates, rank, control):
                pc += 1
                continue
            words[UNIT_MASK] = m
            reason = REASON_UNIT if op == UNIT else REASON_COLD
            break
        elif op == JOIN:
            splits[g, SP_PC] = pc
            splits[g, SP_MASK] = mask
            if not join(splits, groups, g, pc):
                words[EXECUTED] += words[BUDGET] - left
                return REASON_GONE
            mask = splits[g, SP_MASK]
            pc += 1
            continue
        elif op == EXIT:
            if m == mask:
                splits[g, SP_MASK] = mask
                if leave(splits, groups, g):
                    words[EXECUTED] += words[BUDGET] - left
                    words[EXITED] |= m
                    return REASON_EXIT
                words[EXITED] |= m
                pc = splits[g, SP_PC]
                mask = splits[g, SP_MASK]
            elif m != 0:
                diverge(splits, groups, words, g, m, mask & ~m, pc, pc + 1, -1)
                mask = splits[g, SP_MASK]
                pc += 1
            else:
                pc += 1
            continue
        elif op == BRX:
            splits[g, SP_MASK] = mask
            if m != 0 and not branch_index(c, m, w, g, pc, lists, registers, splits, groups, words):
                reason = REASON_BAD_INDEX
                break
            mask = splits[g, SP_MASK]
            pc = splits[g, SP_PC] if m != 0 else pc + 1
            continue
        # {{scalar}}
        pc += 1
    words[EXECUTED] += words[BUDGET] - left
    splits[g, SP_PC] = pc
    splits[g, SP_MASK] = mask
    return reason


@generated(types.int64(types.int64), nogil=True, pipeline_class=WHOLE)
def run(control):
    """Runs split words[SPLIT] and those that follow it. If there is a batch, runs its splits in turn until
    all wait (REASON_STANDS) or one, words[SPLIT], needs Python at once. Returns the reason why it stopped.
    """
    words: Any = carray(pointer(control), (CONTROL_WORDS,), dtype=np.int64)
    batch, budget, before = words[BATCH] != 0, words[BUDGET], words[EXECUTED]
    if batch:
        retry_standing(control)
    together = 0
    while True:
        if batch and not next_split(control):
            together += 1
            if together < MOST_TOGETHER and (retry_happened(control) or fast_together(control)):
                continue
            return REASON_STANDS
        reason = run_split(control)
        if not batch and reason == REASON_GONE and follow(words, budget, before):
            continue
        if not batch or not settle_split(control, reason):
            return reason
