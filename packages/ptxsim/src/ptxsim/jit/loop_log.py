"""The access log for observers, for accesses whose lanes are all in one buffer or window."""

# ruff: noqa: F405, SIM110
# pyright: reportUndefinedVariable=false
# ruff and pyright cannot see the names that bytecode._publish defines; numba refuses names that do not exist
import numpy as np

from ptxsim.isa.address_map import SHARED_BASE, SPACE_SHARED
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.bytecode import *  # noqa: F403
from ptxsim.jit.intrinsics import *  # noqa: F403
from ptxsim.jit.loop_memory import HEARD, OWN, access_size, same_element, set_word, u64, word

EVERY_BYTE = 0x0101_0101_0101_0101  # flags of eight bytes that are written


@inner
def all_apart(registers, slot, mask):
    """Whether the lanes' addresses strictly ascend, so that no two are equal."""
    last = np.int64(-1)
    for l in range(32):
        if (mask >> l) & 1:
            address = np.int64(lane_value(registers, slot, l))
            if address <= last:
                return False
            last = address
    return True


@inner
def first_at(registers, slot, mask, lane):
    """The first lane with the address of `lane`."""
    address = lane_value(registers, slot, lane)
    for l in range(lane):
        if (mask >> l) & 1 and lane_value(registers, slot, l) == address:
            return l
    return lane


@inner
def last_at(registers, slot, mask, lane):
    """The last lane with the address of `lane`: if several lanes store to one address, its value remains."""
    address = lane_value(registers, slot, lane)
    for l in range(31, lane, -1):
        if (mask >> l) & 1 and lane_value(registers, slot, l) == address:
            return l
    return lane


@inner
def held_already(row, registers, control, lane, host):
    """LOG_SAME if memory already holds the value that a lane is about to store, else 0."""
    width = column(row, ACCESS_WIDTH)
    names = word(control, LISTS_PTR) + 4 * column(row, ACCESS_LIST)
    for v in range(column(row, ACCESS_ELEMENTS)):
        value = lane_value(registers, np.int64(load32(u64(names + 4 * v))), lane)
        if not same_element(host + v * width, width, value):
            return 0
    return LOG_SAME


@inner
def alike(row, registers, control, lane, other):
    """Whether two lanes store the same value."""
    names = word(control, LISTS_PTR) + 4 * column(row, ACCESS_LIST)
    for v in range(column(row, ACCESS_ELEMENTS)):
        slot, kept = np.int64(load32(u64(names + 4 * v))), u64((1 << 8 * column(row, ACCESS_WIDTH)) - 1)
        if column(row, ACCESS_WIDTH) == 8:
            kept = ~u64(0)
        if (lane_value(registers, slot, lane) ^ lane_value(registers, slot, other)) & kept:
            return False
    return True


@inner
def met_with(met, row, registers, control, lane, last):
    """`met` after one more lane. Bit n: a lane before n stores to the place of n, which is the last to do so;
    bit 32 + n: and not the same value.
    """
    if lane != last:
        met |= np.int64(1) << last
        if not alike(row, registers, control, lane, last):
            met |= np.int64(1) << (32 + last)
    return met


@inner
def flags_of(met, lane, last):
    return LOG_AGAIN * (met >> last & 1) | LOG_OPEN * (met >> (32 + lane) & 1)


@inner
def log_simple(row, pc, m, w, write, distance, registers, control):
    """Logs an access of the lanes in m to the memory that `reach` has found. Returns False, without logging,
    if the access has to be done lane by lane.
    """
    place = word(control, PLACE)
    if place == OWN:
        return own_lanes(row, m, write, distance, registers, control)
    if place == HEARD:
        log_lanes(row, pc, m, w * 32, write, distance, registers, control)
    return True


@inner
def log_lanes(row, pc, m, thread, write, distance, registers, control):
    shift = column(row, IMM) + (SHARED_BASE if column(row, ACCESS_SPACE) == SPACE_SHARED else 0)
    used, size = word(control, LOG_USED), access_size(row)
    entry, slot = word(control, LOG_PTR) + LOG_BYTES * used, column(row, ACCESS_ADDRESS)
    apart, rest, met = write == 0 or all_apart(registers, slot, m), m, np.int64(0)
    while rest:
        l = lowest_bit(rest)
        rest &= rest - 1
        address = np.int64(lane_value(registers, slot, l))
        set_word(entry, LOG_ROW, pc)
        set_word(entry, LOG_THREAD, thread + l)
        set_word(entry, LOG_PLACE, address + shift)
        same = 0
        if write:
            last = l if apart else last_at(registers, slot, m, l)
            same = held_already(row, registers, control, last, address + distance)
            if not apart:
                same |= flags_of(met, l, last)
                met = met_with(met, row, registers, control, l, last)
        set_word(entry, LOG_SIZE, 2 * size + write + same)
        entry += LOG_BYTES
        used += 1
    set_word(control, LOG_USED, used)


@inner
def own_lanes(row, m, write, distance, registers, control):
    """Whether an access to local memory is not reported: only loads of unwritten bytes are. Marks bytes of a
    store as written.
    """
    slot, size, rest = column(row, ACCESS_ADDRESS), access_size(row), m
    flags = distance + word(control, LOCAL_WRITTEN) - word(control, LOCAL_PTR)
    while rest:
        l = lowest_bit(rest)
        rest &= rest - 1
        at = np.int64(lane_value(registers, slot, l)) + flags + l * word(control, LOCAL_BYTES)
        if write:
            mark_written(at, size)
        elif not all_written(at, size):
            return False
    return True


@inner
def mark_written(at, size):
    for b in range(0, size, 8):
        if size >= 8:
            store64(u64(at + b), u64(EVERY_BYTE))
        elif size == 4:
            store32(u64(at), u64(EVERY_BYTE))
        elif size == 2:
            store16(u64(at), u64(EVERY_BYTE))
        else:
            store8(u64(at), u64(EVERY_BYTE))


@inner
def all_written(at, size):
    if size == 4:
        return load32(u64(at)) == u64(EVERY_BYTE & 0xFFFF_FFFF)
    if size < 4:
        return load8(u64(at)) != 0 and load8(u64(at + size - 1)) != 0
    for b in range(0, size, 8):
        if load64(u64(at + b)) != u64(EVERY_BYTE):
            return False
    return True
