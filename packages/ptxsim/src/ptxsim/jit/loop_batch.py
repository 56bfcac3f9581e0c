"""A batch: the splits that one call of the main loop runs without observers. Also queues instructions for
units.

The states of a split are those of `bytecode.BATCH_STATE`. Fast forms of unit instructions (units/registry.py)
use the helpers here.
"""

# ruff: noqa: F405, SIM109, SIM110
# pyright: reportUndefinedVariable=false
# ruff and pyright cannot see the names that bytecode._publish defines; numba refuses names that do not exist
import numpy as np

from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.bytecode import *  # noqa: F403
from ptxsim.jit.intrinsics import *  # noqa: F403
from ptxsim.jit.loop_memory import set_word, word
from ptxsim.jit.simd_memory import lanes_differ


@inner
def lowest_lane(m):
    lane = 0
    while not (m >> lane) & 1:
        lane += 1
    return lane


@inner
def elected_lane(members, limit):
    """The highest member up to lane `limit`, else the lowest; the same as in machine/choices.py."""
    lane = limit
    while lane >= 0 and not (members >> lane) & 1:
        lane -= 1
    return lane if lane >= 0 else lowest_lane(members)


@inner
def same_in_all(registers, slot, m):
    """Whether all lanes of m hold the same value."""
    if m == FULL:
        return lanes_differ(registers, slot) == 0
    value = lane_value(registers, slot, lowest_lane(m))
    for l in range(32):
        if (m >> l) & 1 and lane_value(registers, slot, l) != value:
            return False
    return True


@inner
def issue(c, m, g, pc, lists, registers, predicates, control):
    """Queues an instruction of one thread, with the values it reads, for its unit; False if it cannot."""
    n = word(control, ISSUED)
    if m & (m - 1) or n == word(control, ISSUES):
        return False
    lane, start = lowest_lane(m), c[UNIT_LIST]
    entry = word(control, ISSUED_PTR) + ISSUE_BYTES * n
    for v in range(c[UNIT_SLOTS]):
        value = lane_value(registers, np.int64(lists[start + v]), lane)
        set_word(entry, ISSUE_VALUES + v, np.int64(value))
    for v in range(c[UNIT_SLOTS], c[UNIT_SLOTS] + c[UNIT_PREDICATES]):
        set_word(entry, ISSUE_VALUES + v, mask_of(predicates, 2 * np.int64(lists[start + v])))
    set_word(entry, ISSUE_ROW, pc)
    set_word(entry, ISSUE_SPLIT, g)
    set_word(entry, ISSUE_MASK, m)
    set_word(entry, ISSUE_LOGGED, word(control, LOG_USED))
    set_word(control, ISSUED, n + 1)
    return True


# ---- the batch ----


@inner
def batch_split(control, i):
    return word(word(control, BATCH_PTR), i)


@inner
def batch_state(control, g):
    return word(word(control, BATCH_PTR), word(control, SPLITS) + g)


@inner
def set_batch_state(control, g, state):
    set_word(word(control, BATCH_PTR), word(control, SPLITS) + g, state)


@inner
def retry_standing(control):
    """Lets every waiting split try again, because something has happened."""
    for i in range(word(control, BATCH)):
        g = batch_split(control, i)
        if batch_state(control, g) == STANDS:
            set_batch_state(control, g, MOVING)


@inner
def retry_happened(control):
    """The same if compiled code has done something that they may wait for; returns whether it has."""
    happened = word(control, HAPPENED) != 0
    if happened:
        set_word(control, HAPPENED, 0)
        retry_standing(control)
    return happened


@inner
def admit(control):
    """Adds the splits that a branch has created to the batch."""
    for i in range(word(control, NEW_COUNT)):
        g = word(control, NEW_FIRST + i)
        if word(word(control, SP_PTR) + SPLIT_BYTES * g, SP_STATE) != RUNNABLE:
            continue
        if batch_state(control, g) == ABSENT:
            n = word(control, BATCH)
            set_word(word(control, BATCH_PTR), n, g)
            set_word(control, BATCH, n + 1)
        set_batch_state(control, g, MOVING)
    set_word(control, NEW_COUNT, 0)


@inner
def next_split(control):
    """Sets words[SPLIT] to the first running split of the batch; returns False if there is none."""
    for i in range(word(control, BATCH)):
        if batch_state(control, batch_split(control, i)) == MOVING:
            set_word(control, SPLIT, batch_split(control, i))
            return True
    return False


@inner
def leave_warp(control, g):
    """Marks lanes that have left the kernel as not alive; Python is told when the whole batch waits."""
    w = word(word(control, SP_PTR) + SPLIT_BYTES * g, SP_WARP)
    alive = word(control, ALIVE_PTR)
    set_word(alive, w, word(alive, w) & ~word(control, EXITED))
    set_word(control, EXITED, 0)
    set_word(control, LEFT, 1)


@inner
def settle_split(control, reason):
    """Sets the state of words[SPLIT], which has stopped, and adds the splits that it created. Returns False
    if Python is needed at once.
    """
    g = word(control, SPLIT)
    admit(control)
    if reason == REASON_UNIT:
        set_batch_state(control, g, STANDS)
        set_word(control, EXECUTED, word(control, EXECUTED) - 1)  # it is counted when it is done
    elif reason == REASON_BUDGET:
        set_batch_state(control, g, PAUSED)
    elif reason == REASON_GONE or reason == REASON_EXIT or reason == REASON_BAD_INDEX:
        set_batch_state(control, g, GONE)
    if word(control, EXITED) != 0 and reason != REASON_BAD_INDEX:
        leave_warp(control, g)
    return reason in QUIET_REASONS
