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
def write_element(host, width, x):
    if width == 4:
        store32(u64(host), x)
    elif width == 8:
        store64(u64(host), x)
    elif width == 2:
        store16(u64(host), x)
    else:
        store8(u64(host), x)


@njit
def whole_range(c, size, cta, registers, SEG, CT, CTL):
    """Host addresses of a global or shared access of all 32 lanes, in CTL[HOST..]; False if not that simple.

    Simple is: every address aligned, all in one segment or in one CTA's window. CTL[PLACE] is then the log
    name of the address CTL[HOST_BASE].
    """
    space = c[AUX]
    first = np.int64(lane_value(registers, c[A], 0)) + c[IMM]
    if space == SPACE_GENERIC and first >= GLOBAL_BASE:
        space = SPACE_GLOBAL
    if space == SPACE_GLOBAL:
        i = CTL[LAST_SEGMENT]
        if not (SEG[i, SEG_BASE] <= first and first + size <= SEG[i, SEG_END]):
            i = find_segment(SEG, first, size)
            if i < 0:
                return False
            CTL[LAST_SEGMENT] = i
        base, end, host = SEG[i, SEG_BASE], SEG[i, SEG_END], SEG[i, SEG_HOST]
        CTL[PLACE] = base if SEG[i, SEG_LOGGED] != 0 else 0
    elif space == SPACE_SHARED:
        start = CT[cta, CT_RANK] << RANK_SHIFT
        base, end = start + SHARED_START, start + CTL[SHARED_LIMIT]
        host = CT[cta, CT_SHARED] + SHARED_START
        CTL[PLACE] = SHARED_BASE + base
    else:
        return False
    CTL[HOST_BASE] = host
    bits = place_lanes(registers, c[A], c[IMM] - base, end - size - base, host, hosts(CTL))
    return bits >= 0 and ((bits | base) & (size - 1)) == 0


@njit(inline="always")
def hosts(CTL):
    """Address of CTL[HOST]."""
    return CTL[CONTROL_PTR] + 8 * HOST


@njit
def log_warp(LOG, CTL, row, thread, size, write):
    """Logs an access of all 32 lanes whose host addresses are in CTL[HOST..]."""
    if CTL[PLACE] != 0:
        n = CTL[LOG_USED]
        offset = CTL[PLACE] - CTL[HOST_BASE]
        for l in range(32):
            LOG[n + l, LOG_ROW] = row
            LOG[n + l, LOG_THREAD] = thread + l
            LOG[n + l, LOG_PLACE] = CTL[HOST + l] + offset
            LOG[n + l, LOG_SIZE] = 2 * size + write
        CTL[LOG_USED] = n + 32


@njit
def load_warp(registers, lists, first, count, width, extend, CTL):
    """Loads for all 32 lanes from the addresses in CTL[HOST..]."""
    names, places = CTL[LISTS_PTR] + 4 * first, hosts(CTL)
    if extend:
        pass
    elif width == 4 and count == 4:
        return load_4x4(registers, names, places)
    elif width == 4 and count == 1:
        return load_1x4(registers, names, places)
    elif width == 4 and count == 2:
        return load_2x4(registers, names, places)
    elif width == 8 and count == 1:
        return load_1x8(registers, names, places)
    elif width == 8 and count == 2:
        return load_2x8(registers, names, places)
    elif width == 2 and count == 1:
        return load_1x2(registers, names, places)
    for v in range(count):
        slot = np.int64(lists[first + v])
        for l in range(32):
            set_lane_value(registers, slot, l, read_element(CTL[HOST + l] + v * width, width, extend))


@njit
def store_warp(registers, lists, first, count, width, CTL):
    """Stores for all 32 lanes to the addresses in CTL[HOST..]."""
    names, places = CTL[LISTS_PTR] + 4 * first, hosts(CTL)
    if width == 4 and count == 4:
        return store_4x4(registers, names, places)
    if width == 4 and count == 1:
        return store_1x4(registers, names, places)
    if width == 4 and count == 2:
        return store_2x4(registers, names, places)
    if width == 8 and count == 1:
        return store_1x8(registers, names, places)
    if width == 8 and count == 2:
        return store_2x8(registers, names, places)
    if width == 2 and count == 1:
        return store_1x2(registers, names, places)
    for v in range(count):
        slot = np.int64(lists[first + v])
        for l in range(32):
            write_element(CTL[HOST + l] + v * width, width, lane_value(registers, slot, l))


@njit
def load_row(c, m, w, cta, lists, registers, SEG, CT, LOG, CTL, row):
    base = c[A]
    count = c[B]
    width = c[C]
    first = c[D]
    size = count * width
    if m == FULL and whole_range(c, size, cta, registers, SEG, CT, CTL):
        if CTL[LOG_ON] != 0:
            log_warp(LOG, CTL, row, w * 32, size, 0)
        load_warp(registers, lists, first, count, width, c[E], CTL)
        return
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
def store_row(c, m, w, cta, lists, registers, SEG, CT, LOG, CTL, row):
    base = c[A]
    count = c[B]
    width = c[C]
    first = c[D]
    size = count * width
    if m == FULL and whole_range(c, size, cta, registers, SEG, CT, CTL):
        if CTL[LOG_ON] != 0:
            log_warp(LOG, CTL, row, w * 32, size, 1)
        store_warp(registers, lists, first, count, width, CTL)
        return
    for l in range(32):
        if (m >> l) & 1:
            address = np.int64(lane_value(registers, base, l)) + c[IMM]
            host = translate(address, size, c[AUX], w * 32 + l, cta, SEG, CT, CTL)
            if host == 0:
                fault(CTL, l, address)
            else:
                if CTL[LOG_ON] != 0:
                    log_access(LOG, CTL, row, w * 32 + l, size, 1)
                for v in range(count):
                    write_element(
                        host + v * width, width, lane_value(registers, np.int64(lists[first + v]), l)
                    )
