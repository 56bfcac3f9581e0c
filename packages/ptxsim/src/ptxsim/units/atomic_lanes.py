"""Atomics of a warp in compiled code, lane by lane in ascending order.

The main loop calls `update_lanes`, which applies if all addresses are valid. The handlers in atomics.py check
and log the accesses and look up the memory themselves.
"""

from __future__ import annotations

import numpy as np
from numba.np.numpy_support import carray

from ptxsim.isa.address_map import GLOBAL_BASE, SPACE_GLOBAL, SPACE_LOCAL, WINDOW_MASK
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.bytecode import (
    CALLED_BLOCK,
    CHANGED,
    CLUSTER_SIZE,
    CONTROL_WORDS,
    CT_COLUMNS,
    CT_PTR,
    SEG_COLUMNS,
    SEG_PTR,
    SEGMENTS,
    WARPS_PER_CTA,
)
from ptxsim.jit.called import called
from ptxsim.jit.compiled import compiled
from ptxsim.jit.intrinsics import column, lane_value, pointer, room_for_lanes, set_lane_value
from ptxsim.jit.loop_memory import read_element, set_word, word, write_element
from ptxsim.jit.translate import in_window, is_shared, place_name, resolve, shared_place, translate
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.atomic_values import changed

ADDRESS, OFFSET, SPACE, SIZE, OPERATION, KIND, B, C, TARGET = range(9)


@inner
def _find_hosts(block, m, warp, registers, hosts, control):
    """Fills `hosts` with host addresses for lanes m; returns the mask of lanes in shared memory, or -1 if an
    address is not valid.
    """
    words = carray(pointer(control), (CONTROL_WORDS,), dtype=np.int64)
    segments = carray(pointer(words[SEG_PTR]), (words[SEGMENTS], SEG_COLUMNS), dtype=np.int64)
    ctas = carray(pointer(words[CT_PTR]), (words[CLUSTER_SIZE], CT_COLUMNS), dtype=np.int64)
    size, space, cta, shared = (
        word(block, SIZE),
        word(block, SPACE),
        warp // words[WARPS_PER_CTA],
        np.int64(0),
    )
    for l in range(32):
        if (m >> l) & 1:
            address = np.int64(lane_value(registers, word(block, ADDRESS), l)) + word(block, OFFSET)
            found, _ = resolve(space, address)
            host = translate(address, size, space, 32 * warp + l, cta, segments, ctas, words)
            if host == 0 or found == SPACE_LOCAL:
                return -1
            set_word(hosts, l, host)
            shared |= np.int64(found != SPACE_GLOBAL) << l
    return shared


@inner
def _new(block, shared, l, host, registers):
    """(old value in memory, new value by lane l)."""
    size, was = word(block, SIZE), read_element(host, word(block, SIZE), 0)
    b, c = lane_value(registers, word(block, B), l), lane_value(registers, word(block, C), l)
    in_shared = (shared >> l) & 1 != 0
    return was, changed(word(block, OPERATION), word(block, KIND), size, in_shared, was, b, c)


@inner
def _update(block, m, hosts, shared, registers):
    """Lanes m update the words at their host addresses and receive the old values; returns how many values
    change. shared: mask of the lanes whose word is in shared memory.
    """
    count = 0
    for l in range(32):
        if (m >> l) & 1:
            was, new = _new(block, shared, l, word(hosts, l), registers)
            if new != was:
                count += 1
                write_element(word(hosts, l), word(block, SIZE), new)
            if word(block, TARGET) >= 0:
                set_lane_value(registers, word(block, TARGET), l, was)
    return count


@compiled()
def update_lanes_at(block, m, hosts, shared, registers):
    return _update(block, m, hosts, shared, registers)


@called
def update_lanes(row, m, warp, registers, predicates, control):
    """atom or red of the lanes m, in ascending order; done by the handler if an address is not valid.

    If no value would change, this may be a poll, which ends a turn: the handler must do that, too.
    """
    block, hosts = column(row, CALLED_BLOCK), np.int64(room_for_lanes())
    shared = _find_hosts(block, m, warp, registers, hosts, control)
    idle = True
    for l in range(32):
        if shared >= 0 and (m >> l) & 1 and idle:
            was, new = _new(block, shared, l, word(hosts, l), registers)
            idle = was == new
    if idle:
        return 0
    count = _update(block, m, hosts, shared, registers)
    set_word(control, CHANGED, word(control, CHANGED) + count)
    return 1


def whole_warp(cluster: Cluster, split: Split, addresses: np.ndarray, size: int, space: str):
    """(memory as uint8, offsets in it, places to log) for the lanes' addresses; None unless all are valid and
    in the same memory.
    """
    first = int(addresses[0])
    if (addresses % size).any() or space == "generic" and not (is_shared(first) or first >= GLOBAL_BASE):
        return None
    if space == "global" or space == "generic" and not is_shared(first):
        return _global(cluster.launch.memory, addresses, size)
    if space == "generic" and not is_shared(addresses).all():
        return None
    rank, offsets = shared_place(addresses & WINDOW_MASK if space != "generic" else addresses)
    if (rank != split.cta).any() or not in_window(offsets, size, cluster.launch.shared_end).all():
        return None
    return cluster.shared[split.cta], offsets, place_name(rank, offsets)


def _global(memory, addresses: np.ndarray, size: int):
    found = memory.find(int(addresses[0]))
    if found is None:
        return None
    base, end = memory.rows[found][:2]
    if addresses.min() < base or addresses.max() + size > end:
        return None
    return memory.arrays[found], addresses - base, addresses
