"""mbarrier instructions in the main loop, for runs without observers: the usual case of each.

Unusual cases (no such barrier, a count out of its range) are left entirely to the handler.
"""

from __future__ import annotations

import numpy as np

from ptxsim.isa.address_map import WINDOW_MASK
from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import M32
from ptxsim.isa.operands import MemArg, PredArg
from ptxsim.jit import bytecode
from ptxsim.jit.called import ParameterBlock, called
from ptxsim.jit.intrinsics import column, lane_value, room_for_lanes, set_lane_value, set_mask, store64
from ptxsim.jit.loop_batch import lowest_lane, same_in_all
from ptxsim.jit.loop_memory import set_word, window, word
from ptxsim.jit.translate import in_window, is_shared, shared_place
from ptxsim.machine.mbarrier import (
    MAX_COUNT,
    arrive,
    begin,
    complete_phase,
    has_passed,
    legal_count,
    move_tx,
    phases_since,
    state_of,
)

BYTES = 8  # of an mbarrier
SLOT, OFFSET, GENERIC, NUMBER, TARGET, MOVES, ARRIVALS, DROPS = range(8)  # words of a block
AS_MANY = -1  # in ARRIVALS: as many as NUMBER says
PARITY = TARGET  # in a wait: whether it is by parity


# ---- barriers ----


@inner
def address_in(block, registers, lane, slot):
    """The address of an operand in the shared window; -1 for a generic address outside of it."""
    address = np.int64(lane_value(registers, word(block, slot), lane)) + word(block, slot + 1)
    if word(block, slot + 2) and not is_shared(address):
        return np.int64(-1)
    return address & WINDOW_MASK


@inner
def row_of(control, place):
    """Host address of the row of a place, whether its barrier is initialised or not; 0 if there is no row."""
    row = word(control, bytecode.BARRIER_PTR)
    for _ in range(word(control, bytecode.BARRIERS)):
        if word(row, bytecode.MB_PLACE) == place:
            return row
        row += bytecode.BARRIER_BYTES
    return np.int64(0)


@inner
def barrier_at(control, place):
    """Host address of the row of an initialised mbarrier; 0 if there is none at the place."""
    row = row_of(control, place)
    return row if row != 0 and word(row, bytecode.MB_LIVES) else np.int64(0)


@inner
def changed(control, barrier):
    """Called after arrivals and changes of the tx-count: completes the phase if nothing is missing."""
    set_word(control, bytecode.CHANGED, word(control, bytecode.CHANGED) + 1)
    if complete_phase(barrier):
        set_word(control, bytecode.HAPPENED, 1)
        set_word(control, bytecode.PHASES_DONE, word(control, bytecode.PHASES_DONE) + 1)


# ---- arrive, expect_tx, complete_tx ----


@inner
def _number(block, registers, lane):
    slot = word(block, NUMBER)
    return np.int64(lane_value(registers, slot, lane) & M32) if slot >= 0 else np.int64(1)


@inner
def _arrivals(block, number):
    return number if word(block, ARRIVALS) == AS_MANY else word(block, ARRIVALS)


@inner
def _may_signal(block, m, registers, control, rows):
    """Whether no lane's signal moves a count out of its range; puts the addresses of the rows into `rows`."""
    for l in range(32):
        if (m >> l) & 1:
            barrier = barrier_at(control, address_in(block, registers, l, SLOT))
            if barrier == 0:
                return False
            arrivals = size = 0
            for k in range(l + 1):
                if (m >> k) & 1 and (k == l or word(rows, k) == barrier):
                    number = _number(block, registers, k)
                    arrivals, size = arrivals + _arrivals(block, number), size + number * word(block, MOVES)
            tx = word(barrier, bytecode.MB_TX) + size
            if arrivals > word(barrier, bytecode.MB_PENDING) or abs(tx) > MAX_COUNT:
                return False
            set_word(rows, l, barrier)
    return True


@called
def signal_lanes(row, m, warp, registers, predicates, control):
    """mbarrier.arrive, arrive_drop, expect_tx and complete_tx (PTX ISA 9.7.13.15.11 - 14)."""
    block, rows = column(row, bytecode.CALLED_BLOCK), np.int64(room_for_lanes())
    if not _may_signal(block, m, registers, control, rows):
        return 0
    for l in range(32):
        if (m >> l) & 1:
            barrier, number = word(rows, l), _number(block, registers, l)
            if word(block, TARGET) >= 0:
                state = state_of(word(barrier, bytecode.MB_PHASE), word(barrier, bytecode.MB_PENDING))
                set_lane_value(registers, word(block, TARGET), l, np.uint64(state))
            if word(block, MOVES):
                move_tx(barrier, number * word(block, MOVES))
            arrive(barrier, _arrivals(block, number), word(block, DROPS))
            changed(control, barrier)
    return 1


def fast_signal(instr, args: tuple, unset) -> ParameterBlock | None:
    mods = set(instr.mods)
    if "noComplete" in mods:
        return None
    arrives = "arrive" in mods or "arrive_drop" in mods
    target, rest = (-1, args) if isinstance(args[0], MemArg) else (args[0], args[1:])
    moves = -1 if "complete_tx" in mods else int("expect_tx" in mods)
    arrivals = 0 if not arrives else 1 if moves else AS_MANY
    place = _place(instr, rest[0])
    number = rest[1] if len(rest) > 1 else -1
    return ParameterBlock(*place, number, target, moves, arrivals, "arrive_drop" in mods)


def is_generic(instr) -> bool:
    return not {"shared", "shared::cta", "shared::cluster"} & set(instr.mods)


def _place(instr, arg: MemArg) -> tuple[int, int, int]:
    """The words SLOT, OFFSET and GENERIC of an operand."""
    return arg.slot, arg.offset, int(is_generic(instr))


# ---- init, inval ----


@inner
def remade(control):
    """Notes that barriers were initialised or invalidated."""
    set_word(control, bytecode.CHANGED, word(control, bytecode.CHANGED) + 1)
    set_word(control, bytecode.REMADE, 1)


@inner
def _may_init(block, m, warp, registers, control):
    """Whether each lane initialises a different barrier of its own CTA, at a place that has none."""
    rank, room = warp // word(control, bytecode.WARPS_PER_CTA), word(control, bytecode.BARRIER_ROOM)
    if word(control, bytecode.ISSUED) != 0:
        return False
    for l in range(32):
        if (m >> l) & 1:
            place = address_in(block, registers, l, SLOT)
            here, offset = shared_place(place)
            inside = in_window(offset, BYTES, word(control, bytecode.SHARED_LIMIT)) and offset % BYTES == 0
            if place < 0 or here != rank or not inside or not legal_count(_number(block, registers, l)):
                return False
            if barrier_at(control, place) != 0 or word(control, bytecode.BARRIERS) + l >= room:
                return False
            for k in range(l):
                if (m >> k) & 1 and address_in(block, registers, k, SLOT) == place:
                    return False
    return True


@called
def init_lanes(row, m, warp, registers, predicates, control):
    """mbarrier.init of barriers in the warp's own CTA (PTX ISA 9.7.13.15.9)."""
    block = column(row, bytecode.CALLED_BLOCK)
    if not _may_init(block, m, warp, registers, control):
        return 0
    for l in range(32):
        if (m >> l) & 1:
            place, count = address_in(block, registers, l, SLOT), _number(block, registers, l)
            barrier = row_of(control, place)
            if barrier == 0:
                number = word(control, bytecode.BARRIERS)
                barrier = word(control, bytecode.BARRIER_PTR) + bytecode.BARRIER_BYTES * number
                set_word(barrier, bytecode.MB_PLACE, place)
                set_word(control, bytecode.BARRIERS, number + 1)
            begin(barrier, count)
            set_word(barrier, bytecode.MB_MAKER, warp * 32 + l)
            rank, offset = shared_place(place)
            store64(np.uint64(window(rank, control) + offset), np.uint64(state_of(0, count)))
            set_word(control, bytecode.HAPPENED, 1)
    remade(control)
    return 1


@called
def inval_lanes(row, m, warp, registers, predicates, control):
    """mbarrier.inval of barriers that no issued instruction can still signal (PTX ISA 9.7.13.15.10)."""
    block, rows = column(row, bytecode.CALLED_BLOCK), np.int64(room_for_lanes())
    if word(control, bytecode.ISSUED) != 0:
        return 0
    for l in range(32):
        if (m >> l) & 1:
            barrier = barrier_at(control, address_in(block, registers, l, SLOT))
            set_word(rows, l, barrier)
            if barrier == 0:
                return 0
            for k in range(l):
                if (m >> k) & 1 and word(rows, k) == barrier:
                    return 0
    for l in range(32):
        if (m >> l) & 1:
            set_word(word(rows, l), bytecode.MB_LIVES, 0)
    remade(control)
    return 1


def fast_init(instr, args: tuple, unset) -> ParameterBlock:
    return ParameterBlock(*_place(instr, args[0]), args[1] if len(args) > 1 else -1)


# ---- waits ----


@called
def wait_passed(row, m, warp, registers, predicates, control):
    """Waits of all lanes for the same completed phase of a barrier in their CTA (PTX ISA 9.7.13.15.16)."""
    block, leader = column(row, bytecode.CALLED_BLOCK), lowest_lane(m)
    place = address_in(block, registers, leader, SLOT)
    barrier, asked = barrier_at(control, place), lane_value(registers, word(block, NUMBER), leader)
    if barrier == 0 or shared_place(place)[0] != warp // word(control, bytecode.WARPS_PER_CTA):
        return 0
    if word(block, PARITY):
        usual = asked & M32 <= 1 and has_passed(word(barrier, bytecode.MB_PHASE), np.int64(asked))
    else:
        usual = phases_since(word(barrier, bytecode.MB_PHASE), np.int64(asked)) == 1
    same = same_in_all(registers, word(block, SLOT), m) and same_in_all(registers, word(block, NUMBER), m)
    if not (usual and same):
        return 0
    set_mask(predicates, word(block, TARGET + 1), m, m)
    return 1


def fast_wait(instr, args: tuple, unset) -> ParameterBlock | None:
    done, bar, asked = args[:3]
    if not isinstance(done, PredArg):
        return None
    return ParameterBlock(*_place(instr, bar), asked, "parity" in instr.mods, done.code >> 1)
