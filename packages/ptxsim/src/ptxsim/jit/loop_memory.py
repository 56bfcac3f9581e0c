"""Loads and stores of the main loop: simulated addresses -> host memory, checked, logged, for 32 lanes.

There are two implementations. `load_lanes` and `store_lanes` do any access of any lanes. `load_warp` and
`store_warp` do the usual widths for a whole warp whose addresses lie in one buffer or window, as vector code:
step 3 at 1024^3 runs 1.4 times faster without observers, 4 % with checks (CPU time, minima of 5 runs).

Arguments have the names of loop_template.py; `c` is a bytecode row, `registers` the address of the warp's
register file.
"""

# ruff: noqa: F405, SIM109
import numpy as np

from ptxsim.isa.address_map import *  # noqa: F403
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.bytecode import *  # noqa: F403
from ptxsim.jit.intrinsics import *  # noqa: F403
from ptxsim.jit.simd_memory import check_lanes, loader, storer
from ptxsim.jit.translate import in_window, is_local, is_shared, shared_address, shared_place, translate

WHOLE_WARP = (
    (1, 1),
    (1, 2),
    (1, 4),
    (2, 4),
    (4, 4),
    (1, 8),
    (2, 8),
)  # (elements, bytes of one) with vector code


@inner(inline="always")
def u64(x):
    return np.uint64(x)


@inner
def fault(words, lane, address):
    if words[FAULTS] == 0:
        words[FIRST_KIND] = words[FAULT_KIND]
        words[FAULT_LANE] = lane
        words[FAULT_ADDRESS] = address
    words[FAULTS] += 1


@inner
def own_bytes(words, thread, size, write):
    """Whether it is an access to local memory that nobody hears of: all but loads of unwritten bytes."""
    if not is_local(words[PLACE]):
        return False
    flags = words[LOCAL_WRITTEN] + thread * words[LOCAL_BYTES] + words[PLACE] - LOCAL_BASE
    for b in range(size):
        if write:
            store8(u64(flags + b), u64(1))
        elif load8(u64(flags + b)) == 0:
            return False
    return True


@inner
def log_access(log, words, row, thread, size, write):
    if words[PLACE] != 0 and not own_bytes(words, thread, size, write):
        n = words[LOG_USED]
        log[n, LOG_ROW] = row
        log[n, LOG_THREAD] = thread
        log[n, LOG_PLACE] = words[PLACE]
        log[n, LOG_SIZE] = 2 * size + write
        words[LOG_USED] = n + 1


@inner
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


@inner
def same_element(host, width, x):
    """Are the low bytes of x those in memory?"""
    if width == 4:
        return load32(u64(host)) == x & u64(0xFFFF_FFFF)
    if width == 8:
        return load64(u64(host)) == x
    if width == 2:
        return load16(u64(host)) == x & u64(0xFFFF)
    return load8(u64(host)) == x & u64(0xFF)


@inner
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


@inner(inline="always")
def word(base, number):
    """int64 number `number` after an address."""
    return column(u64(base), number)


@inner(inline="always")
def set_word(base, number, value):
    store64(u64(base + 8 * number), u64(value))


@inner(inline="always")
def within(segment, address, size):
    return word(segment, SEG_BASE) <= address and address + size <= word(segment, SEG_END)


@inner
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


@inner
def own_offset(address, size, space, cta, control):
    """Offset in the CTA's window; -1 if there are not `size` bytes (a power of two), aligned to it."""
    if space == SPACE_GENERIC and not is_shared(address):
        return -1
    rank, offset = shared_place(address)
    legal = in_window(offset, size, word(control, SHARED_LIMIT)) and offset & (size - 1) == 0
    return offset if legal and rank == cta else -1


@inner
def window(cta, control):
    """Host address of a CTA's shared memory."""
    return word(word(control, CT_PTR) + CT_BYTES * cta, CT_SHARED)


@inner
def reach(row, size, cta, registers, control):
    """Distance from the addresses of a global or shared access of all 32 lanes to those of the host; 0 if it
    is not that simple.

    Simple is: every address aligned to `size`, and all in one segment or in the CTA's window.
    """
    space, slot, offset = column(row, ACCESS_SPACE), column(row, ACCESS_ADDRESS), column(row, IMM)
    if space == SPACE_SHARED:
        window = word(control, CT_PTR) + CT_BYTES * cta
        base = shared_address(cta, SHARED_START)
        host = word(window, CT_SHARED) + SHARED_START
        room = word(control, SHARED_LIMIT) - SHARED_START - size
    elif space == SPACE_GLOBAL or space == SPACE_GENERIC:
        first = np.int64(lane_value(registers, slot, 0)) + offset
        if space == SPACE_GENERIC and first < GLOBAL_BASE:
            return 0
        segment = segment_of(control, first, size)
        if segment == 0:
            return 0
        base, host = word(segment, SEG_BASE), word(segment, SEG_HOST)
        room = word(segment, SEG_END) - size - base
    else:
        return 0
    bits = check_lanes(registers, slot, offset - base, room)
    if bits < 0 or (bits | base) & (size - 1):
        return 0
    return host - base + offset


@inner
def access_size(row):
    """Bytes per lane of a load or store."""
    return column(row, ACCESS_ELEMENTS) * column(row, ACCESS_WIDTH)


@inner
def all_apart(registers, slot, mask):
    """Do the lanes' addresses ascend? Then no two are one."""
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
    """The last lane with the address of `lane`: where several store to one place, what it stores remains."""
    address = lane_value(registers, slot, lane)
    for l in range(31, lane, -1):
        if (mask >> l) & 1 and lane_value(registers, slot, l) == address:
            return l
    return lane


@inner
def held_already(row, registers, control, lane, host):
    """LOG_SAME if memory holds what a lane is about to store, else 0."""
    width = column(row, ACCESS_WIDTH)
    names = word(control, LISTS_PTR) + 4 * column(row, ACCESS_LIST)
    for v in range(column(row, ACCESS_ELEMENTS)):
        value = lane_value(registers, np.int64(load32(u64(names + 4 * v))), lane)
        if not same_element(host + v * width, width, value):
            return 0
    return LOG_SAME


@inner
def log_warp(row, pc, thread, write, distance, registers, control):
    """Logs an access of all 32 lanes to the memory that `reach` has found."""
    shift = column(row, IMM) + (SHARED_BASE if column(row, ACCESS_SPACE) == SPACE_SHARED else 0)
    segment = word(control, SEG_PTR) + SEG_BYTES * word(control, LAST_SEGMENT)
    if column(row, ACCESS_SPACE) == SPACE_SHARED or word(segment, SEG_LOGGED) != 0:
        used, size = word(control, LOG_USED), access_size(row)
        entry, slot = word(control, LOG_PTR) + LOG_BYTES * used, column(row, ACCESS_ADDRESS)
        apart = write == 0 or all_apart(registers, slot, FULL)
        for l in range(32):
            address = np.int64(lane_value(registers, slot, l))
            set_word(entry, LOG_ROW, pc)
            set_word(entry, LOG_THREAD, thread + l)
            set_word(entry, LOG_PLACE, address + shift)
            same = 0
            if write:
                last = l if apart else last_at(registers, slot, FULL, l)
                same = held_already(row, registers, control, last, address + distance)
            set_word(entry, LOG_SIZE, 2 * size + write + same)
            entry += LOG_BYTES
        set_word(control, LOG_USED, used + 32)


def _whole_warp(vector_code):
    """`access(row, distance, registers, control)`: the access of all 32 lanes to the addresses that `reach`
    has found, by the vector code that `vector_code(elements, bytes of one)` makes.
    """
    one_1, one_2, one_4, two_4, four_4, one_8, two_8 = (vector_code(*shape) for shape in WHOLE_WARP)

    @inner
    def access(row, distance, registers, control):
        slot = column(row, ACCESS_ADDRESS)
        width, count = column(row, ACCESS_WIDTH), column(row, ACCESS_ELEMENTS)
        names = word(control, LISTS_PTR) + 4 * column(row, ACCESS_LIST)
        if width == 4 and count == 4:
            four_4(registers, names, slot, distance)
        elif width == 4 and count == 1:
            one_4(registers, names, slot, distance)
        elif width == 4 and count == 2:
            two_4(registers, names, slot, distance)
        elif width == 8 and count == 1:
            one_8(registers, names, slot, distance)
        elif width == 8 and count == 2:
            two_8(registers, names, slot, distance)
        elif width == 2:
            one_2(registers, names, slot, distance)
        else:
            one_1(registers, names, slot, distance)

    return access


load_warp, store_warp = _whole_warp(loader), _whole_warp(storer)


# ---- lane by lane: some lanes, or addresses of several windows ----


@inner
def load_lanes(c, m, w, cta, lists, registers, segments, ctas, log, words, row):
    base = c[ACCESS_ADDRESS]
    count = c[ACCESS_ELEMENTS]
    width = c[ACCESS_WIDTH]
    first = c[ACCESS_LIST]
    size = count * width
    for l in range(32):
        if (m >> l) & 1:
            address = np.int64(lane_value(registers, base, l)) + c[IMM]
            host = translate(address, size, c[ACCESS_SPACE], w * 32 + l, cta, segments, ctas, words)
            if host == 0:
                fault(words, l, address)
            elif words[LOG_ON] != 0:
                log_access(log, words, row, w * 32 + l, size, 0)
            for v in range(count):
                value = read_element(host + v * width, width, c[ACCESS_EXTEND]) if host != 0 else u64(0)
                set_lane_value(registers, np.int64(lists[first + v]), l, value)


@inner
def store_lanes(c, m, w, cta, lists, registers, segments, ctas, log, words, row):
    base = c[ACCESS_ADDRESS]
    count = c[ACCESS_ELEMENTS]
    width = c[ACCESS_WIDTH]
    first = c[ACCESS_LIST]
    size = count * width
    apart = words[LOG_ON] == 0 or all_apart(registers, base, m)
    unchanged = 0  # bits of lanes whose place holds the same afterwards
    for l in range(32):
        if (m >> l) & 1:
            address = np.int64(lane_value(registers, base, l)) + c[IMM]
            host = translate(address, size, c[ACCESS_SPACE], w * 32 + l, cta, segments, ctas, words)
            if host == 0:
                fault(words, l, address)
            else:
                if words[LOG_ON] != 0:
                    one = l if apart else first_at(registers, base, m, l)
                    if one == l:
                        last = l if apart else last_at(registers, base, m, l)
                        same = 1
                        for v in range(count):
                            value = lane_value(registers, np.int64(lists[first + v]), last)
                            if not same_element(host + v * width, width, value):
                                same = 0
                        unchanged |= same << l
                    log_access(log, words, row, w * 32 + l, size, 1 + LOG_SAME * (unchanged >> one & 1))
                for v in range(count):
                    write_element(
                        host + v * width, width, lane_value(registers, np.int64(lists[first + v]), l)
                    )
