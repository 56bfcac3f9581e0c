"""The translation of simulated addresses, for the compiled loop and for handlers in Python alike.

It maps an address of a state space to a window, CTA rank and offset, or to the fault that a chip would raise.
Functions marked `both` take Python integers, integers of compiled code and, if they have no branches, numpy
arrays.
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

# ---- shared memory: address in the window <-> (CTA rank, offset) <-> generic address ----


shared_place = both(address_map.shared_place)


@both
def shared_address(rank, offset):
    """The inverse of shared_place: an address in the .shared::cluster window."""
    return (rank << RANK_SHIFT) + offset


@both
def place_name(rank, offset):
    """The name of a byte of shared memory for logs and observers: its generic address."""
    return SHARED_BASE + (rank << RANK_SHIFT) + offset


is_shared, is_local = both(address_map.is_shared), both(address_map.is_local)


@both
def in_window(offset, size, end):
    """Whether [offset, offset + size) is in a CTA's shared memory, which ends at `end`."""
    return (offset >= SHARED_START) & (offset + size <= end)


# ---- any address ----


@both
def resolve(space, address):
    """(space, address in its window); resolves generic addresses to their space (PTX ISA 5.1)."""
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
    """The fault if a thread of CTA `cta` accesses [address, address + size) of the shared window, or 0."""
    rank, offset = shared_place(address)
    if rank != cta and (space == SPACE_SHARED or rank >= ctas):
        return FAULT_OTHER_CTA
    if not in_window(offset, size, end):
        return FAULT_BOUNDS
    return 0


# ---- compiled code: from there to the host's memory ----


@inner
def find_segment(segments, address, size):
    """The index of the global segment that contains [address, address + size), or -1."""
    for i in range(segments.shape[0]):
        if segments[i, SEG_BASE] <= address and address + size <= segments[i, SEG_END]:
            return i
    return -1


@inner
def translate(address, size, space, thread, cta, segments, ctas, words):
    """The host address of a simulated address, or 0 with the fault in words[FAULT_KIND].

    Sets words[PLACE] to the address to log, or to 0 if nothing is to be logged.
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
