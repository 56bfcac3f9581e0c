"""Atomics of a whole warp at once, in compiled code, where all lanes reach one memory and none faults.

Lanes take their turns in ascending order, as in atomics.py, which does what is left: the first lane whose
sum is a NaN and those behind it, packed halves, vectors, accesses that fault.
"""

from __future__ import annotations

import numpy as np

from ptxsim.isa.address_map import GLOBAL_BASE, WINDOW_MASK
from ptxsim.jit.compiled import compiled
from ptxsim.jit.translate import in_window, is_shared, place_name, shared_place
from ptxsim.machine.checked_access import log_rows
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split

OPERATIONS = ("and", "or", "xor", "exch", "cas", "add", "min", "max", "inc", "dec")
_AND, _OR, _XOR, _EXCH, _CAS, _ADD, _MIN, _MAX, _INC, _DEC = range(len(OPERATIONS))
_LEAST = 1.1754943508222875e-38  # the least normal number of f32


@compiled()
def integers(words, at, b, c, operation, old):
    """Lane i does the operation on words[at[i]]; what was there goes to old[i]. Gives how many change it."""
    changed = 0
    for i in range(at.size):
        was, new = words[at[i]], b[i]
        if operation == _AND:
            new = was & b[i]
        elif operation == _OR:
            new = was | b[i]
        elif operation == _XOR:
            new = was ^ b[i]
        elif operation == _CAS:
            new = c[i] if was == b[i] else was
        elif operation == _ADD:
            new = was + b[i]
        elif operation == _MIN:
            new = min(was, b[i])
        elif operation == _MAX:
            new = max(was, b[i])
        elif operation == _INC:
            new = words.dtype.type(0) if was >= b[i] else was + words.dtype.type(1)
        elif operation == _DEC:
            new = b[i] if was == 0 or was > b[i] else was - words.dtype.type(1)
        old[i], words[at[i]] = was, new
        changed += words[at[i]] != was
    return changed


@compiled()
def sums(words, bits, at, b, flush, old):
    """The same for sums of floats, up to the first NaN: (lanes that are done, how many changed a word).

    bits: the same memory as whole numbers. flush: subnormal numbers count as zeros of their sign.
    """
    changed = 0
    for i in range(at.size):
        was, more, before = words[at[i]], b[i], bits[at[i]]
        if flush:
            was = was * words.dtype.type(0) if abs(was) < _LEAST else was
            more = more * words.dtype.type(0) if abs(more) < _LEAST else more
        new = was + more
        if new != new:
            return i, changed
        if flush and abs(new) < _LEAST:
            new = new * words.dtype.type(0)
        old[i], words[at[i]] = before, new
        changed += bits[at[i]] != before
    return at.size, changed


def whole_warp(cluster: Cluster, split: Split, addresses: np.ndarray, size: int, space: str):
    """(memory as uint8, offsets in it, places to log) of the lanes' addresses; None where lanes differ."""
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


def log_whole(cluster: Cluster, split: Split, lanes: np.ndarray, places: np.ndarray, size: int) -> None:
    """Tells of the stores of these lanes."""
    if cluster.bus.heard and len(lanes):
        cluster.bus.accesses(cluster, log_rows(split, lanes, places, size, write=True))
