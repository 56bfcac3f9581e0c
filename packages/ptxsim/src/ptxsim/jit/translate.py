"""The one translation of simulated addresses, for the compiled loop and for handlers in Python.

address of a state space -> window, CTA rank and offset, or the fault that a chip would raise. Functions
marked `both` take Python integers, the integers of compiled code and, where they do not branch, numpy arrays.
"""

# ruff: noqa: SIM109
from __future__ import annotations

from numba.extending import register_jitable as both

from ptxsim.isa import address_map
from ptxsim.isa.address_map import (
    FAULT_BOUNDS,
    FAULT_MISALIGNED,
    FAULT_OTHER_CTA,
    LOCAL_BASE,
    LOCAL_END,
    RANK_SHIFT,
    SHARED_BASE,
    SHARED_END,
    SHARED_START,
    SPACE_CLUSTER,
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_LOCAL,
    SPACE_SHARED,
    WINDOW_MASK,
)
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.bytecode import (
    CLUSTER_SIZE,
    CT_SHARED,
    FAULT_KIND,
    LAST_SEGMENT,
    LOCAL_BYTES,
    LOCAL_PTR,
    PLACE,
    SEG_BASE,
    SEG_END,
    SEG_HOST,
    SEG_LOGGED,
    SHARED_LIMIT,
)

# ---- shared memory: address in the window <-> (CTA rank, offset) <-> place, a name of its own ----


shared_place = both(address_map.shared_place)


@both
def shared_address(rank, offset):
    """The inverse: an address of the .shared::cluster window."""
    return (rank << RANK_SHIFT) + offset


@both
def place_name(rank, offset):
    """How logs and observers call a byte of shared memory: as its generic address."""
    return SHARED_BASE + (rank << RANK_SHIFT) + offset


is_shared, is_local = both(address_map.is_shared), both(address_map.is_local)


@both
def in_window(offset, size, end):
    """Whether a CTA has [offset, offset + size); `end` is where its shared memory ends."""
    return (offset >= SHARED_START) & (offset + size <= end)


# ---- any address ----


@both
def resolve(space, address):
    """(space, address in its window): a generic address finds its space (PTX ISA 5.1)."""
    if space == SPACE_GENERIC:
        if SHARED_BASE <= address < SHARED_END:
            return SPACE_CLUSTER, address - SHARED_BASE
        if LOCAL_BASE <= address < LOCAL_END:
            return SPACE_LOCAL, address - LOCAL_BASE
        return SPACE_GLOBAL, address
    if space == SPACE_GLOBAL:
        return SPACE_GLOBAL, address
    return space, address & WINDOW_MASK


@both
def shared_fault(space, address, size, cta, ctas, end):
    """What keeps a thread of CTA `cta` from [address, address + size) of the shared window; 0 if nothing."""
    rank, offset = shared_place(address)
    if rank != cta and (space == SPACE_SHARED or rank >= ctas):
        return FAULT_OTHER_CTA
    if not in_window(offset, size, end):
        return FAULT_BOUNDS
    return 0


# ---- compiled code: on to the host's memory ----


@inner
def find_segment(segments, address, size):
    """Index of the global segment that holds [address, address + size), or -1."""
    for i in range(segments.shape[0]):
        if segments[i, SEG_BASE] <= address and address + size <= segments[i, SEG_END]:
            return i
    return -1


@inner
def translate(address, size, space, thread, cta, segments, ctas, words):
    """Host address of a simulated one, or 0 with the fault in words[FAULT_KIND].

    words[PLACE] is what to log, 0 if nothing.
    """
    space, address = resolve(space, address)
    if address % size != 0:
        words[FAULT_KIND] = FAULT_MISALIGNED
        return 0
    if space == SPACE_SHARED or space == SPACE_CLUSTER:
        wrong = shared_fault(space, address, size, cta, words[CLUSTER_SIZE], words[SHARED_LIMIT])
        if wrong:
            words[FAULT_KIND] = wrong
            return 0
        rank, offset = shared_place(address)
        words[PLACE] = place_name(rank, offset)
        return ctas[rank, CT_SHARED] + offset
    if space == SPACE_LOCAL:
        if address + size > words[LOCAL_BYTES]:
            words[FAULT_KIND] = FAULT_BOUNDS
            return 0
        words[PLACE] = LOCAL_BASE + address
        return words[LOCAL_PTR] + thread * words[LOCAL_BYTES] + address
    i = words[LAST_SEGMENT]
    if not (segments[i, SEG_BASE] <= address and address + size <= segments[i, SEG_END]):
        i = find_segment(segments, address, size)
        if i < 0:
            words[FAULT_KIND] = FAULT_BOUNDS
            return 0
        words[LAST_SEGMENT] = i
    words[PLACE] = address if segments[i, SEG_LOGGED] != 0 else 0
    return segments[i, SEG_HOST] + (address - segments[i, SEG_BASE])
