"""Memory as unit instructions see it: the checked and logged bytes behind one lane's address."""

from __future__ import annotations

import numpy as np

from ptxsim.jit import bytecode as ml

_SPACES = {
    "global": ml.SPACE_GLOBAL,
    "shared": ml.SPACE_SHARED,
    "shared::cta": ml.SPACE_SHARED,
    "local": ml.SPACE_LOCAL,
    "shared::cluster": ml.SPACE_CLUSTER,
    "generic": ml.SPACE_GENERIC,
}


def bytes_at(
    cluster, split, lane: int, address: int, size: int, space: str, write: bool
) -> np.ndarray | None:
    """uint8 (size,) view of simulated memory; None, with a finding, if the access is not legal.

    The access is logged for the checks as one of this lane.
    """
    code = _SPACES[space]
    if code == ml.SPACE_GENERIC:
        if ml.SHARED_BASE <= address < ml.SHARED_END:
            code, address = ml.SPACE_CLUSTER, address - ml.SHARED_BASE
        elif ml.LOCAL_BASE <= address < ml.LOCAL_END:
            code, address = ml.SPACE_LOCAL, address - ml.LOCAL_BASE
        else:
            code = ml.SPACE_GLOBAL
    if address % size:
        return _fault(cluster, split, ml.FAULT_MISALIGNED, lane, address)
    if code == ml.SPACE_GLOBAL:
        view = cluster.launch.memory.view(address, size)
        place = address
    elif code == ml.SPACE_LOCAL:
        view = cluster.local[split.warp * 32 + lane, address : address + size]
        place = 0
    else:
        address &= 0xFFFF_FFFF
        rank, offset = address >> ml.RANK_SHIFT, address & ml.OFFSET_MASK
        if rank >= cluster.ctas or (code == ml.SPACE_SHARED and rank != split.cta):
            return _fault(cluster, split, ml.FAULT_OTHER_CTA, lane, address)
        inside = ml.SHARED_START <= offset and offset + size <= cluster.launch.shared_end
        view = cluster.shared[rank, offset : offset + size] if inside else None
        place = ml.SHARED_BASE + (rank << ml.RANK_SHIFT) + offset
    if view is None or len(view) < size:
        return _fault(cluster, split, ml.FAULT_BOUNDS, lane, address)
    if cluster.checks and place:
        log = np.array([[split.row, split.warp * 32 + lane, place, 2 * size + int(write)]], np.int64)
        cluster.checks.accesses(cluster, log)
    return view


def _fault(cluster, split, kind: int, lane: int, address: int) -> None:
    mask = split.mask
    cluster.reporter.fault(cluster, split, kind, lane, address, 1)
    split.mask = mask
    return None
