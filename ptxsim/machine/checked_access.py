"""Memory as unit instructions see it: the checked and logged bytes behind one lane's address."""

from __future__ import annotations

import numpy as np

from ptxsim.isa.address_map import (
    FAULT_BOUNDS,
    FAULT_MISALIGNED,
    FAULT_OTHER_CTA,
    LOCAL_BASE,
    LOCAL_END,
    OFFSET_MASK,
    RANK_SHIFT,
    SHARED_BASE,
    SHARED_END,
    SHARED_START,
    SPACE_CLUSTER,
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_LOCAL,
    SPACE_SHARED,
)

_SPACES = {
    "global": SPACE_GLOBAL,
    "shared": SPACE_SHARED,
    "shared::cta": SPACE_SHARED,
    "local": SPACE_LOCAL,
    "shared::cluster": SPACE_CLUSTER,
    "generic": SPACE_GENERIC,
}


def bytes_at(
    cluster, split, lane: int, address: int, size: int, space: str, write: bool
) -> np.ndarray | None:
    """uint8 (size,) view of simulated memory; None, with a finding, if the access is not legal.

    The access is logged for the checks as one of this lane.
    """
    code = _SPACES[space]
    if code == SPACE_GENERIC:
        if SHARED_BASE <= address < SHARED_END:
            code, address = SPACE_CLUSTER, address - SHARED_BASE
        elif LOCAL_BASE <= address < LOCAL_END:
            code, address = SPACE_LOCAL, address - LOCAL_BASE
        else:
            code = SPACE_GLOBAL
    if address % size:
        return _fault(cluster, split, FAULT_MISALIGNED, lane, address)
    if code == SPACE_GLOBAL:
        view = cluster.launch.memory.view(address, size)
        place = address
    elif code == SPACE_LOCAL:
        view = cluster.local[split.warp * 32 + lane, address : address + size]
        place = 0
    else:
        address &= 0xFFFF_FFFF
        rank, offset = address >> RANK_SHIFT, address & OFFSET_MASK
        if rank >= cluster.ctas or (code == SPACE_SHARED and rank != split.cta):
            return _fault(cluster, split, FAULT_OTHER_CTA, lane, address)
        inside = SHARED_START <= offset and offset + size <= cluster.launch.shared_end
        view = cluster.shared[rank, offset : offset + size] if inside else None
        place = SHARED_BASE + (rank << RANK_SHIFT) + offset
    if view is None or len(view) < size:
        return _fault(cluster, split, FAULT_BOUNDS, lane, address)
    if cluster.checks and place:
        log = np.array([[split.row, split.warp * 32 + lane, place, 2 * size + int(write)]], np.int64)
        cluster.checks.accesses(cluster, log)
    return view


def _fault(cluster, split, kind: int, lane: int, address: int) -> None:
    mask = split.mask
    cluster.reporter.fault(cluster, split, kind, lane, address, 1)
    split.mask = mask
    return None
