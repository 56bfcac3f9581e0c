"""Unit instructions that the main loop does by itself where nobody watches, and the crew of splits it runs.

Python can do all of them too (isa/): a form that is not simple here is left to it.
lowering/fast_unit_forms.py says which rows qualify and what their columns hold.
"""

# ruff: noqa: F405, SIM109, SIM110
import numpy as np
from numba import njit

from ptxsim.isa.address_map import *  # noqa: F403
from ptxsim.jit.bytecode import *  # noqa: F403
from ptxsim.jit.intrinsics import *  # noqa: F403
from ptxsim.jit.loop_memory import set_word, word
from ptxsim.jit.simd_memory import lanes_differ
from ptxsim.jit.translate import shared_place


@njit
def quick_unit(c, m, g, pc, lists, registers, predicates, rank, control):
    """Does the unit instruction of row `c` for the lanes in m; False: Python must."""
    done = False
    if c[AUX] == QUICK_ELECT:
        done = elect(c, m, registers, predicates)
    elif c[AUX] == QUICK_WAIT:
        done = wait_passed(c, m, registers, predicates, rank, control)
    elif c[AUX] == QUICK_ISSUE:
        done = issue(c, m, g, pc, lists, registers, predicates, control)
    set_word(control, QUICK_DONE, word(control, QUICK_DONE) + done)
    return done


@njit
def lowest_lane(m):
    lane = 0
    while not (m >> lane) & 1:
        lane += 1
    return lane


@njit
def same_in_all(registers, slot, m):
    """Whether all lanes of m hold the same value."""
    if m == FULL:
        return lanes_differ(registers, slot) == 0
    value = lane_value(registers, slot, lowest_lane(m))
    for l in range(32):
        if (m >> l) & 1 and lane_value(registers, slot, l) != value:
            return False
    return True


@njit
def elect(c, m, registers, predicates):
    """elect.sync whose member mask is just the lanes that are here (PTX ISA 9.7.14)."""
    leader = lowest_lane(m)
    members = np.int64(lane_value(registers, c[A], leader)) & FULL
    if members != m or not same_in_all(registers, c[A], m):
        return False
    if c[D] >= 0:
        for l in range(32):
            if (m >> l) & 1:
                set_lane_value(registers, c[D], l, np.uint64(leader))
    set_mask(predicates, c[B], m, 1 << leader)
    return True


@njit
def wait_passed(c, m, registers, predicates, rank, control):
    """mbarrier.try_wait.parity on a phase of an own barrier that is complete (PTX ISA 9.7.13.15.16)."""
    leader = lowest_lane(m)
    place = (np.int64(lane_value(registers, c[A], leader)) + c[IMM]) & WINDOW_MASK
    parity = np.int64(lane_value(registers, c[B], leader)) & 1
    if shared_place(place)[0] != rank:
        return False
    row = word(control, PHASE_PTR)
    for _ in range(word(control, PHASES)):
        if word(row, PHASE_PLACE) == place:
            if word(row, PHASE_NUMBER) & 1 == parity:
                return False
            if not (same_in_all(registers, c[A], m) and same_in_all(registers, c[B], m)):
                return False
            set_mask(predicates, c[D], m, m)
            return True
        row += PHASE_BYTES
    return False


@njit
def issue(c, m, g, pc, lists, registers, predicates, control):
    """Leaves an instruction of one thread, with the registers it reads, to be handed to its unit later."""
    n = word(control, ISSUED)
    if m & (m - 1) or n == ISSUE_ROOM:
        return False
    lane, file = lowest_lane(m), word(control, WARPS_PER_CTA) * word(control, CLUSTER_SIZE) + n
    copies = np.uint64(word(control, R_PTR) + file * word(control, R_STRIDE))
    for v in range(c[D], c[D] + c[B]):
        set_lane_value(copies, np.int64(lists[v]), lane, lane_value(registers, np.int64(lists[v]), lane))
    file_predicates = word(control, P_PTR) + file * word(control, P_STRIDE)
    for v in range(c[D] + c[B], c[D] + c[B] + c[C]):
        set_word(file_predicates, np.int64(lists[v]), mask_of(predicates, 2 * np.int64(lists[v])))
    entry = word(control, ISSUED_PTR) + ISSUE_BYTES * n
    set_word(entry, ISSUE_ROW, pc)
    set_word(entry, ISSUE_SPLIT, g)
    set_word(entry, ISSUE_MASK, m)
    set_word(control, ISSUED, n + 1)
    return True


# ---- the crew ----


@njit
def crew_split(control, i):
    return word(word(control, CREW_PTR), i)


@njit
def crew_state(control, g):
    return word(word(control, CREW_PTR), word(control, SPLITS) + g)


@njit
def set_crew_state(control, g, state):
    set_word(word(control, CREW_PTR), word(control, SPLITS) + g, state)


@njit
def stir(control):
    """Lets every split that stands try again: something has happened."""
    for i in range(word(control, CREW)):
        g = crew_split(control, i)
        if crew_state(control, g) == STANDS:
            set_crew_state(control, g, MOVING)


@njit
def enlist(control):
    """Takes the splits that a branch has created into the crew."""
    for i in range(word(control, NEW_COUNT)):
        g = word(control, NEW_FIRST + i)
        if word(word(control, SP_PTR) + SPLIT_BYTES * g, SP_STATE) != RUNNABLE:
            continue
        if crew_state(control, g) == ABSENT:
            n = word(control, CREW)
            set_word(word(control, CREW_PTR), n, g)
            set_word(control, CREW, n + 1)
        set_crew_state(control, g, MOVING)
    set_word(control, NEW_COUNT, 0)


@njit
def next_split(control):
    """Makes CTL[SPLIT] the first split of the crew that moves; False if none does."""
    for i in range(word(control, CREW)):
        if crew_state(control, crew_split(control, i)) == MOVING:
            set_word(control, SPLIT, crew_split(control, i))
            return True
    return False


@njit
def settle_split(control, reason):
    """Notes where CTL[SPLIT] has come to, and what it created; False if Python is needed at once."""
    g = word(control, SPLIT)
    enlist(control)
    if reason == REASON_UNIT:
        set_crew_state(control, g, STANDS)
        set_word(control, EXECUTED, word(control, EXECUTED) - 1)  # it counts when it is done
    elif reason == REASON_BUDGET:
        set_crew_state(control, g, PAUSED)
    elif reason == REASON_GONE or reason == REASON_EXIT or reason == REASON_BAD_INDEX:
        set_crew_state(control, g, GONE)
    return reason in QUIET_REASONS and word(control, EXITED) == 0


@njit
def barrier_of(control, g):
    """Number of the CTA barrier at which a whole warp stands as split g, or -1."""
    split = word(control, SP_PTR) + SPLIT_BYTES * g
    w, mask = word(split, SP_WARP), word(split, SP_MASK)
    row = word(control, CODE_PTR) + ROW_BYTES * word(split, SP_PC)
    if crew_state(control, g) != STANDS or word(row, OP) != UNIT or word(row, AUX) != QUICK_BAR:
        return -1
    guard = mask_of(np.uint64(word(control, P_PTR) + w * word(control, P_STRIDE)), word(row, GUARD))
    if mask != word(word(control, ALIVE_PTR), w) or mask & ~guard:
        return -1
    registers = np.uint64(word(control, R_PTR) + w * word(control, R_STRIDE))
    number = np.int64(lane_value(registers, word(row, A), lowest_lane(mask)))
    return number if number < 16 else -1


@njit
def open_barriers(control):
    """Opens the barrier of every CTA whose warps all stand at the same one; False if there is none."""
    opened = False
    per_cta = word(control, WARPS_PER_CTA)
    for cta in range(word(control, CLUSTER_SIZE)):
        missing = 0
        for w in range(cta * per_cta, (cta + 1) * per_cta):
            missing += word(word(control, ALIVE_PTR), w) != 0
        number = -1
        for i in range(word(control, CREW)):
            g = crew_split(control, i)
            if g // 32 // per_cta == cta:
                here = barrier_of(control, g)
                if here >= 0 and (number < 0 or here == number):
                    number = here
                    missing -= 1
        if number < 0 or missing:
            continue
        opened = True
        set_word(control, QUICK_DONE, word(control, QUICK_DONE) + 1)
        for i in range(word(control, CREW)):
            g = crew_split(control, i)
            if g // 32 // per_cta == cta and barrier_of(control, g) == number:
                split = word(control, SP_PTR) + SPLIT_BYTES * g
                set_word(split, SP_PC, word(split, SP_PC) + 1)
                set_word(control, EXECUTED, word(control, EXECUTED) + 1)
                set_crew_state(control, g, MOVING)
    return opened
