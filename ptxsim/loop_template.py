"""The main loop: runs one split (lanes of a warp at the same instruction) until something outside is needed.

This file is a template: `interp.py` replaces the marked lines by functions for scalar operations and calls of
them, writes the result to the cache directory and imports it there. Column and reason numbers come from
`machine_layout.py`.

Arrays: code (rows, COLUMNS), lists, SP (splits, ..), G (groups, ..), SEG (segments, ..), CT (CTAs, ..), LOG
(capacity, 4), CTL control words. `registers` and `predicates` are addresses of the warp's files: uint64
(slots, 32) and int64 masks.
"""

# ruff: noqa: F405, F841, SIM109
import numpy as np
from numba import carray, njit, types

from ptxsim.isa.mathlib import *  # noqa: F403
from ptxsim.machine_layout import *  # noqa: F403
from ptxsim.native import *  # noqa: F403
from ptxsim.vector_ir import vector_operation  # noqa: F401


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
    """Host address of a simulated one, or 0 with the reason in CTL[FAULT_KIND]; its log name in CTL[PLACE]."""
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
    base = c[A]
    first = np.int64(lane_value(registers, base, 0)) + c[IMM]
    low = first
    high = first
    bits = 0
    for l in range(32):
        address = np.int64(lane_value(registers, base, l)) + c[IMM]
        low = min(low, address)
        high = max(high, address)
        bits |= address
    if bits & (size - 1):
        return False
    if space == SPACE_GENERIC and low >= GLOBAL_BASE:
        space = SPACE_GLOBAL
    if space == SPACE_GLOBAL:
        i = CTL[LAST_SEGMENT]
        if not (SEG[i, SEG_BASE] <= low and high + size <= SEG[i, SEG_END]):
            i = find_segment(SEG, low, high - low + size)
            if i < 0:
                return False
            CTL[LAST_SEGMENT] = i
        CTL[HOST_BASE] = low
        CTL[PLACE] = low if SEG[i, SEG_LOGGED] != 0 else 0
        delta = SEG[i, SEG_HOST] - SEG[i, SEG_BASE]
    elif space == SPACE_SHARED:
        start = CT[cta, CT_RANK] << RANK_SHIFT
        if low < start + SHARED_START or high + size > start + CTL[SHARED_LIMIT]:
            return False
        CTL[HOST_BASE] = low
        CTL[PLACE] = SHARED_BASE + low
        delta = CT[cta, CT_SHARED] - start
    else:
        return False
    for l in range(32):
        CTL[HOST + l] = np.int64(lane_value(registers, base, l)) + c[IMM] + delta
    CTL[HOST_BASE] += delta
    return True


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
def load_row(c, m, w, cta, lists, registers, SEG, CT, LOG, CTL, row):
    base = c[A]
    count = c[B]
    width = c[C]
    first = c[D]
    size = count * width
    if m == FULL and whole_range(c, size, cta, registers, SEG, CT, CTL):
        if CTL[LOG_ON] != 0:
            log_warp(LOG, CTL, row, w * 32, size, 0)
        for v in range(count):
            slot = np.int64(lists[first + v])
            if width == 4 and c[E] == 0:
                for l in range(32):
                    set_lane_value(registers, slot, l, load32(u64(CTL[HOST + l] + 4 * v)))
            else:
                for l in range(32):
                    value = read_element(CTL[HOST + l] + v * width, width, c[E])
                    set_lane_value(registers, slot, l, value)
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
        for v in range(count):
            slot = np.int64(lists[first + v])
            if width == 4:
                for l in range(32):
                    store32(u64(CTL[HOST + l] + 4 * v), lane_value(registers, slot, l))
            else:
                for l in range(32):
                    write_element(CTL[HOST + l] + v * width, width, lane_value(registers, slot, l))
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


@njit
def new_group(G, w, parent, rpc, need):
    """A group of lanes that will meet at row rpc; its index."""
    for k in range(w * 32, w * 32 + 32):
        if G[k, G_LIVE] == 0:
            G[k, G_LIVE] = 1
            G[k, G_RPC] = rpc
            G[k, G_NEED] = need
            G[k, G_ARRIVED] = 0
            G[k, G_PARENT] = parent
            return k
    return -1


@njit
def new_split(SP, CTL, w, pc, mask, group):
    for k in range(w * 32, w * 32 + 32):
        if SP[k, SP_STATE] == FREE:
            SP[k, SP_STATE] = RUNNABLE
            SP[k, SP_PC] = pc
            SP[k, SP_MASK] = mask
            SP[k, SP_GROUP] = group
            SP[k, SP_WARP] = w
            CTL[NEW_FIRST + CTL[NEW_COUNT]] = k
            CTL[NEW_COUNT] += 1
            return k
    return -1


@njit
def diverge(SP, G, CTL, g, taken, other, target, fall, rpc):
    """Splits g: `other` lanes go on in g at `fall`, `taken` lanes get a split of their own at `target`."""
    w = SP[g, SP_WARP]
    group = SP[g, SP_GROUP]
    if rpc >= 0 and (group < 0 or G[group, G_RPC] != rpc):
        group = new_group(G, w, group, rpc, taken | other)
    SP[g, SP_GROUP] = group
    SP[g, SP_MASK] = other
    SP[g, SP_PC] = fall
    new_split(SP, CTL, w, target, taken, group)


@njit
def join(SP, G, g, row):
    """Lanes of g reach a meeting point. True: go on (perhaps with more lanes); False: g is gone, its lanes
    wait.
    """
    while True:
        group = SP[g, SP_GROUP]
        if group < 0 or G[group, G_RPC] != row:
            return True
        G[group, G_ARRIVED] |= SP[g, SP_MASK]
        if G[group, G_ARRIVED] != G[group, G_NEED]:
            SP[g, SP_STATE] = FREE
            return False
        SP[g, SP_MASK] = G[group, G_NEED]
        SP[g, SP_GROUP] = G[group, G_PARENT]
        G[group, G_LIVE] = 0


@njit
def leave(SP, G, g):
    """Lanes of g exit. True: g is gone; False: g goes on as the lanes that waited only for these."""
    gone = SP[g, SP_MASK]
    group = SP[g, SP_GROUP]
    resumed = False
    while group >= 0:
        parent = G[group, G_PARENT]
        G[group, G_NEED] &= ~gone
        if not resumed:
            if G[group, G_NEED] == 0:
                G[group, G_LIVE] = 0
            elif G[group, G_NEED] == G[group, G_ARRIVED]:
                SP[g, SP_PC] = G[group, G_RPC]
                SP[g, SP_MASK] = G[group, G_NEED]
                SP[g, SP_GROUP] = parent
                G[group, G_LIVE] = 0
                resumed = True
            else:
                resumed = True
                SP[g, SP_STATE] = FREE
        group = parent
    if not resumed:
        SP[g, SP_STATE] = FREE
    return SP[g, SP_STATE] == FREE


@njit
def branch_index(c, m, w, g, pc, lists, registers, SP, G, CTL):
    """brx.idx: the lanes with the lowest pending index go on in g, every other index gets a split."""
    rest = m
    while True:
        lane = 0
        while not (rest >> lane) & 1:
            lane += 1
        index = np.int64(lane_value(registers, c[D], lane))
        if index < 0 or index >= c[B]:
            return False
        same = 0
        for l in range(32):
            if (rest >> l) & 1 and np.int64(lane_value(registers, c[D], l)) == index:
                same |= 1 << l
        target = lists[c[A] + index]
        if same == rest:
            SP[g, SP_PC] = target
            return True
        diverge(SP, G, CTL, g, same, rest & ~same, target, pc, c[RPC])
        rest &= ~same


# {{functions}}


@njit(types.int64(types.int64), nogil=True, cache=True)
def run(control):
    """Runs split CTL[SPLIT] for at most CTL[BUDGET] instructions; returns the reason it stopped.

    control: address of the control words, which hold the addresses and sizes of all other arrays.
    """
    CTL = carray(pointer(control), (CONTROL_WORDS,), dtype=np.int64)
    code = carray(pointer(CTL[CODE_PTR]), (CTL[ROWS], COLUMNS), dtype=np.int64)
    lists = carray(pointer(CTL[LISTS_PTR]), (CTL[LISTS],), dtype=np.int32)
    SP = carray(pointer(CTL[SP_PTR]), (CTL[SPLITS], 5), dtype=np.int64)
    G = carray(pointer(CTL[G_PTR]), (CTL[SPLITS], 5), dtype=np.int64)
    SEG = carray(pointer(CTL[SEG_PTR]), (CTL[SEGMENTS], 4), dtype=np.int64)
    CT = carray(pointer(CTL[CT_PTR]), (CTL[CLUSTER_SIZE], 2), dtype=np.int64)
    LOG = carray(pointer(CTL[LOG_PTR]), (CTL[LOG_ROOM], 4), dtype=np.int64)
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
        elif op == LD:
            load_row(c, m, w, cta, lists, registers, SEG, CT, LOG, CTL, pc)
            pc += 1
            if CTL[FAULTS] != 0 or CTL[LOG_USED] > log_room:
                reason = REASON_FAULT
                break
            continue
        elif op == ST:
            store_row(c, m, w, cta, lists, registers, SEG, CT, LOG, CTL, pc)
            pc += 1
            if CTL[FAULTS] != 0 or CTL[LOG_USED] > log_room:
                reason = REASON_FAULT
                break
            continue
        elif op == UNIT or op == COLD:
            if m == 0 or (c[AUX] == ONLY_OBSERVED and not observed and op == UNIT):
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
        row = np.uint64(CTL[CODE_PTR] + pc * ROW_BYTES)
        # {{scalar}}
        pc += 1
    CTL[EXECUTED] += CTL[BUDGET] - left
    SP[g, SP_PC] = pc
    SP[g, SP_MASK] = mask
    return reason
