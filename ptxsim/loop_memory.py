"""Loads and stores of the main loop: simulated addresses -> host memory, checked, logged, for 32 lanes.

Arguments named in capitals are the arrays of loop_template.py; `c` is a bytecode row, `registers` the
address of the warp's register file.
"""

# ruff: noqa: F405, SIM109
import numpy as np
from numba import njit

from ptxsim.machine_layout import *  # noqa: F403
from ptxsim.native import *  # noqa: F403
from ptxsim.vector_memory import *  # noqa: F403


@njit(inline="always")
def u64(x):
    return np.uint64(x)


@njit
def find_segment(SEG, address, size):
    """Index of the global segment that holds [address, address + size), or -1."""
    for i in range(SEG.shape[0]):
        if SEG[i, SEG_BASE] <= address and address + size <= SEG[i, SEG_END]:
            return i
    return -1


@njit
def translate(address, size, space, thread, cta, SEG, CT, CTL):
    """Host address of a simulated one, or 0 with the reason in CTL[FAULT_KIND]; log name in CTL[PLACE]."""
    if space == SPACE_GENERIC:
        if SHARED_BASE <= address < SHARED_END:
            address -= SHARED_BASE
            space = SPACE_CLUSTER
        elif LOCAL_BASE <= address < LOCAL_END:
            address -= LOCAL_BASE
            space = SPACE_LOCAL
    if address % size != 0:
        CTL[FAULT_KIND] = FAULT_MISALIGNED
        return 0
    if space == SPACE_SHARED or space == SPACE_CLUSTER:
        address &= 0xFFFFFFFF
        rank = address >> RANK_SHIFT
        offset = address & OFFSET_MASK
        if rank != CT[cta, CT_RANK] and (space == SPACE_SHARED or rank >= CTL[CLUSTER_SIZE]):
            CTL[FAULT_KIND] = FAULT_OTHER_CTA
            return 0
        if offset < SHARED_START or offset + size > CTL[SHARED_LIMIT]:
            CTL[FAULT_KIND] = FAULT_BOUNDS
            return 0
        CTL[PLACE] = SHARED_BASE + (rank << RANK_SHIFT) + offset
        return CT[rank, CT_SHARED] + offset
    if space == SPACE_LOCAL:
        address &= 0xFFFFFFFF
        if address + size > CTL[LOCAL_BYTES]:
            CTL[FAULT_KIND] = FAULT_BOUNDS
            return 0
        CTL[PLACE] = 0
        return CTL[LOCAL_PTR] + thread * CTL[LOCAL_BYTES] + address
    i = CTL[LAST_SEGMENT]
    if not (SEG[i, SEG_BASE] <= address and address + size <= SEG[i, SEG_END]):
        i = find_segment(SEG, address, size)
        if i < 0:
            CTL[FAULT_KIND] = FAULT_BOUNDS
            return 0
        CTL[LAST_SEGMENT] = i
    CTL[PLACE] = address if SEG[i, SEG_LOGGED] != 0 else 0
    return SEG[i, SEG_HOST] + (address - SEG[i, SEG_BASE])


@njit
def fault(CTL, lane, address):
    if CTL[FAULTS] == 0:
        CTL[FIRST_KIND] = CTL[FAULT_KIND]
        CTL[FAULT_LANE] = lane
        CTL[FAULT_ADDRESS] = address
    CTL[FAULTS] += 1


@njit
def log_access(LOG, CTL, row, thread, size, write):
    if CTL[PLACE] != 0:
        n = CTL[LOG_USED]
        LOG[n, LOG_ROW] = row
        LOG[n, LOG_THREAD] = thread
        LOG[n, LOG_PLACE] = CTL[PLACE]
        LOG[n, LOG_SIZE] = 2 * size + write
        CTL[LOG_USED] = n + 1


@njit
def read_element(host, width, extend):
    """One element of 1, 2, 4 or 8 bytes, zero-extended, or sign-extended to `extend` bits."""
    if width == 4:
        x = load32(u64(host))
    elif width == 8:
        return load64(u64(host))
    elif width == 2:
        x = load16(u64(host))
    else:
        x = load8(u64(host))
    if extend:
        shift = np.uint64(64 - 8 * width)
        x = np.uint64(np.int64(x << shift) >> np.int64(shift))
        if extend < 64:
            x &= (np.uint64(1) << np.uint64(extend)) - np.uint64(1)
    return x


@njit
def same_element(host, width, x):
    """Are the low bytes of x those in memory?"""
    if width == 4:
        return load32(u64(host)) == x & u64(0xFFFF_FFFF)
    if width == 8:
        return load64(u64(host)) == x
    if width == 2:
        return load16(u64(host)) == x & u64(0xFFFF)
    return load8(u64(host)) == x & u64(0xFF)


@njit
def write_element(host, width, x):
    if width == 4:
        store32(u64(host), x)
    elif width == 8:
        store64(u64(host), x)
    elif width == 2:
        store16(u64(host), x)
    else:
        store8(u64(host), x)


# ---- all 32 lanes at once: `row`, `registers`, `control` are addresses, which cost less to pass than arrays


@njit(inline="always")
def word(base, number):
    """int64 number `number` behind an address."""
    return column(u64(base), number)


@njit(inline="always")
def set_word(base, number, value):
    store64(u64(base + 8 * number), u64(value))


@njit(inline="always")
def within(segment, address, size):
    return word(segment, SEG_BASE) <= address and address + size <= word(segment, SEG_END)


@njit
def segment_of(control, address, size):
    """Address of the global segment's row that holds [address, address + size), or 0."""
    table = word(control, SEG_PTR)
    if within(table + SEG_BYTES * word(control, LAST_SEGMENT), address, size):
        return table + SEG_BYTES * word(control, LAST_SEGMENT)
    for i in range(word(control, SEGMENTS)):
        if within(table + SEG_BYTES * i, address, size):
            set_word(control, LAST_SEGMENT, i)
            return table + SEG_BYTES * i
    return 0


@njit
def place_warp(row, cta, registers, control, hosts):
    """Host addresses of a global or shared access of all 32 lanes, in CTL[hosts..]; False if not that simple.

    Simple is: every address aligned, all in one segment or in one CTA's window. CTL[PLACE] is then the log
    name of the host address CTL[HOST_BASE].
    """
    space, size = column(row, AUX), column(row, B) * column(row, C)
    slot, offset = column(row, A), column(row, IMM)
    first = np.int64(lane_value(registers, slot, 0)) + offset
    if space == SPACE_GLOBAL or (space == SPACE_GENERIC and first >= GLOBAL_BASE):
        segment = segment_of(control, first, size)
        if segment == 0:
            return False
        base, host = word(segment, SEG_BASE), word(segment, SEG_HOST)
        room = word(segment, SEG_END) - size - base
        set_word(control, PLACE, base if word(segment, SEG_LOGGED) != 0 else 0)
    elif space == SPACE_SHARED:
        window = word(control, CT_PTR) + CT_BYTES * cta
        base = (word(window, CT_RANK) << RANK_SHIFT) + SHARED_START
        host = word(window, CT_SHARED) + SHARED_START
        room = word(control, SHARED_LIMIT) - SHARED_START - size
        set_word(control, PLACE, SHARED_BASE + base)
    else:
        return False
    set_word(control, HOST_BASE, host)
    bits = place_lanes(registers, slot, offset - base, room, host, control + 8 * hosts)
    return bits >= 0 and ((bits | base) & (size - 1)) == 0


@njit
def held_already(row, registers, control, lane):
    """LOG_SAME if memory holds what a lane is about to store, else 0."""
    width = column(row, C)
    names, host = word(control, LISTS_PTR) + 4 * column(row, D), word(control, HOST + lane)
    for v in range(column(row, B)):
        value = lane_value(registers, np.int64(load32(u64(names + 4 * v))), lane)
        if not same_element(host + v * width, width, value):
            return 0
    return LOG_SAME


@njit
def log_warp(row, pc, thread, write, registers, control):
    """Logs an access of all 32 lanes whose host addresses are in CTL[HOST..]."""
    if word(control, PLACE) != 0:
        used, size = word(control, LOG_USED), column(row, B) * column(row, C)
        entry = word(control, LOG_PTR) + LOG_BYTES * used
        offset = word(control, PLACE) - word(control, HOST_BASE)
        for l in range(32):
            set_word(entry, LOG_ROW, pc)
            set_word(entry, LOG_THREAD, thread + l)
            set_word(entry, LOG_PLACE, word(control, HOST + l) + offset)
            same = held_already(row, registers, control, l) if write else 0
            set_word(entry, LOG_SIZE, 2 * size + write + same)
            entry += LOG_BYTES
        set_word(control, LOG_USED, used + 32)


@njit
def load_warp(row, registers, control):
    """Loads for all 32 lanes from the addresses in CTL[HOST..]."""
    count, width, extend = column(row, B), column(row, C), column(row, E)
    names, hosts = word(control, LISTS_PTR) + 4 * column(row, D), control + 8 * HOST
    if extend:
        pass
    elif width == 4 and count == 4:
        return load_4x4(registers, names, hosts)
    elif width == 4 and count == 1:
        return load_1x4(registers, names, hosts)
    elif width == 4 and count == 2:
        return load_2x4(registers, names, hosts)
    elif width == 8 and count == 1:
        return load_1x8(registers, names, hosts)
    elif width == 8 and count == 2:
        return load_2x8(registers, names, hosts)
    elif width == 2 and count == 1:
        return load_1x2(registers, names, hosts)
    for v in range(count):
        slot = np.int64(load32(u64(names + 4 * v)))
        for l in range(32):
            value = read_element(word(control, HOST + l) + v * width, width, extend)
            set_lane_value(registers, slot, l, value)


@njit
def store_warp(row, registers, control):
    """Stores for all 32 lanes to the addresses in CTL[HOST..]."""
    count, width = column(row, B), column(row, C)
    names, hosts = word(control, LISTS_PTR) + 4 * column(row, D), control + 8 * HOST
    if width == 4 and count == 4:
        return store_4x4(registers, names, hosts)
    if width == 4 and count == 1:
        return store_1x4(registers, names, hosts)
    if width == 4 and count == 2:
        return store_2x4(registers, names, hosts)
    if width == 8 and count == 1:
        return store_1x8(registers, names, hosts)
    if width == 8 and count == 2:
        return store_2x8(registers, names, hosts)
    if width == 2 and count == 1:
        return store_1x2(registers, names, hosts)
    for v in range(count):
        slot = np.int64(load32(u64(names + 4 * v)))
        for l in range(32):
            write_element(word(control, HOST + l) + v * width, width, lane_value(registers, slot, l))


@njit
def move_warp(row, cta, registers, control):
    """Copies MOVE_BYTES per lane from CTL[HOST..] to where the next row stores them, past registers
    that nobody else reads; False if that is not simple.
    """
    if not place_warp(row + u64(ROW_BYTES), cta, registers, control, TARGET):
        return False
    move_chunks(control + 8 * HOST, control + 8 * TARGET)
    return True


# ---- lane by lane: some lanes, or addresses of several windows ----


@njit
def load_lanes(c, m, w, cta, lists, registers, SEG, CT, LOG, CTL, row):
    base = c[A]
    count = c[B]
    width = c[C]
    first = c[D]
    size = count * width
    for l in range(32):
        if (m >> l) & 1:
            address = np.int64(lane_value(registers, base, l)) + c[IMM]
            host = translate(address, size, c[AUX], w * 32 + l, cta, SEG, CT, CTL)
            if host == 0:
                fault(CTL, l, address)
            elif CTL[LOG_ON] != 0:
                log_access(LOG, CTL, row, w * 32 + l, size, 0)
            for v in range(count):
                value = read_element(host + v * width, width, c[E]) if host != 0 else u64(0)
                set_lane_value(registers, np.int64(lists[first + v]), l, value)


@njit
def store_lanes(c, m, w, cta, lists, registers, SEG, CT, LOG, CTL, row):
    base = c[A]
    count = c[B]
    width = c[C]
    first = c[D]
    size = count * width
    for l in range(32):
        if (m >> l) & 1:
            address = np.int64(lane_value(registers, base, l)) + c[IMM]
            host = translate(address, size, c[AUX], w * 32 + l, cta, SEG, CT, CTL)
            if host == 0:
                fault(CTL, l, address)
            else:
                if CTL[LOG_ON] != 0:
                    same = LOG_SAME
                    for v in range(count):
                        value = lane_value(registers, np.int64(lists[first + v]), l)
                        if not same_element(host + v * width, width, value):
                            same = 0
                    log_access(LOG, CTL, row, w * 32 + l, size, 1 + same)
                for v in range(count):
                    write_element(
                        host + v * width, width, lane_value(registers, np.int64(lists[first + v]), l)
                    )
