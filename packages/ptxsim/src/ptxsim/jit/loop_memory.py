"""Loads and stores of the main loop whose addresses are all in one buffer or window and are checked at once.

`load_warp` and `store_warp` do the usual widths for a full warp as vector code; `load_some` and `store_some`
do any width for any lanes, and local memory. loop_lanes.py does all other accesses and those with a fault.

`row`, `registers` and `control` are addresses, which cost less to pass than arrays.
"""

# ruff: noqa: F405, SIM109
# pyright: reportUndefinedVariable=false
# ruff and pyright cannot see the names that bytecode._publish defines; numba refuses names that do not exist
import numpy as np

from ptxsim.isa.address_map import *  # noqa: F403
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.bytecode import *  # noqa: F403
from ptxsim.jit.intrinsics import *  # noqa: F403
from ptxsim.jit.simd_memory import check_lanes, check_some, loader, storer
from ptxsim.jit.translate import in_window, is_local, is_shared, shared_address, shared_place

WHOLE_WARP = (
    (1, 1),
    (1, 2),
    (1, 4),
    (2, 4),
    (4, 4),
    (1, 8),
    (2, 8),
)  # (elements, bytes per element) for which there is vector code
UNHEARD, HEARD, OWN = range(3)  # of an access: not reported to observers, reported, or to local memory


@inner(inline="always")
def u64(x):
    return np.uint64(x)


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
    """Whether memory holds the low bytes of x."""
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


# ---- the memory that lanes access


@inner(inline="always")
def word(base, number):
    """The int64 with number `number` after an address."""
    return column(u64(base), number)


@inner(inline="always")
def set_word(base, number, value):
    store64(u64(base + 8 * number), u64(value))


@inner(inline="always")
def within(segment, address, size):
    return word(segment, SEG_BASE) <= address and address + size <= word(segment, SEG_END)


@inner
def segment_of(control, address, size):
    """The address of the row of the global segment that contains [address, address + size), or 0."""
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
    """The offset in the CTA's own shared memory; -1 if `size` bytes (a power of two) there, aligned to
    `size`, are not legal.
    """
    if space == SPACE_GENERIC and not is_shared(address):
        return -1
    rank, offset = shared_place(address)
    legal = in_window(offset, size, word(control, SHARED_LIMIT)) and offset & (size - 1) == 0
    return offset if legal and rank == cta else -1


@inner
def window(cta, control):
    """The host address of a CTA's shared memory."""
    return word(word(control, CT_PTR) + CT_BYTES * cta, CT_SHARED)


@inner
def reach(row, size, m, w, cta, registers, control):
    """The distance from simulated to host addresses for an access of the lanes in m: that of lane 0; it grows
    by `step_of` from lane to lane. 0 if the access has to be done lane by lane.

    That is not necessary if every address is aligned to `size` and all are in one segment, the CTA's own
    shared memory or local memory. Sets words[PLACE] to UNHEARD, HEARD or OWN.
    """
    space, slot, offset = column(row, ACCESS_SPACE), column(row, ACCESS_ADDRESS), column(row, IMM)
    first, at, place = np.int64(lane_value(registers, slot, lowest_bit(m))) + offset, 0, HEARD
    if space == SPACE_GENERIC and is_shared(first):
        space, at = SPACE_SHARED, SHARED_BASE
    elif space == SPACE_GENERIC and is_local(first):
        space, at = SPACE_LOCAL, LOCAL_BASE
    if space == SPACE_SHARED:
        base = at + shared_address(cta, SHARED_START)
        host = window(cta, control) + SHARED_START
        room = word(control, SHARED_LIMIT) - SHARED_START - size
    elif space == SPACE_GLOBAL or space == SPACE_GENERIC:
        segment = segment_of(control, first, size)
        if segment == 0:
            return 0
        base, host = word(segment, SEG_BASE), word(segment, SEG_HOST)
        room = word(segment, SEG_END) - size - base
        place = HEARD if word(segment, SEG_LOGGED) != 0 else UNHEARD
    elif space == SPACE_LOCAL:
        base, host, place = at, word(control, LOCAL_PTR) + w * 32 * word(control, LOCAL_BYTES), OWN
        room = word(control, LOCAL_BYTES) - size
    else:
        return 0
    if m == FULL:
        bits = check_lanes(registers, slot, offset - base, room)
    else:
        bits = check_some(registers, slot, offset - base, room, m)
    if bits < 0 or (bits | base) & (size - 1):
        return 0
    set_word(control, PLACE, place)
    return host - base + offset


@inner
def step_of(control):
    """The amount by which the distance that `reach` has found grows from lane to lane."""
    return word(control, LOCAL_BYTES) if word(control, PLACE) == OWN else 0


@inner
def access_size(row):
    """Bytes per lane of a load or store."""
    return column(row, ACCESS_ELEMENTS) * column(row, ACCESS_WIDTH)


def _whole_warp(vector_code):
    """`access(row, distance, registers, control)`: the access of all 32 lanes to the addresses that `reach`
    has found, with the vector code of `vector_code(elements, bytes per element)`.
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


@inner
def load_some(row, m, distance, step, registers, control):
    """Loads for the lanes in m from the addresses that `reach` has found."""
    slot, width, extend = column(row, ACCESS_ADDRESS), column(row, ACCESS_WIDTH), column(row, ACCESS_EXTEND)
    names, count = word(control, LISTS_PTR) + 4 * column(row, ACCESS_LIST), column(row, ACCESS_ELEMENTS)
    while m:
        l = lowest_bit(m)
        m &= m - 1
        host = np.int64(lane_value(registers, slot, l)) + distance + l * step
        for v in range(count):
            value = read_element(host + v * width, width, extend)
            set_lane_value(registers, np.int64(load32(u64(names + 4 * v))), l, value)


@inner
def store_some(row, m, distance, step, registers, control):
    """Stores for the lanes in m to these addresses; the last of several stores to one address remains."""
    slot, width = column(row, ACCESS_ADDRESS), column(row, ACCESS_WIDTH)
    names, count = word(control, LISTS_PTR) + 4 * column(row, ACCESS_LIST), column(row, ACCESS_ELEMENTS)
    while m:
        l = lowest_bit(m)
        m &= m - 1
        host = np.int64(lane_value(registers, slot, l)) + distance + l * step
        for v in range(count):
            value = lane_value(registers, np.int64(load32(u64(names + 4 * v))), l)
            write_element(host + v * width, width, value)
