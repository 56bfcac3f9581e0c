"""Memory accesses of unit instructions: checks the addresses that lanes give, and logs the accesses."""

from __future__ import annotations

import numpy as np

from ptxsim.isa.address_map import (
    FAULT_BOUNDS,
    FAULT_LOCAL,
    FAULT_MISALIGNED,
    FAULT_OTHER_CTA,
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_LOCAL,
    SPACES,
)
from ptxsim.jit.bytecode import LOG_AGAIN, LOG_OPEN, LOG_PLACE, LOG_ROW, LOG_SAME, LOG_SIZE, LOG_THREAD
from ptxsim.jit.translate import in_window, is_shared, place_name, resolve, shared_fault, shared_place
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Lanes


def checked_view(
    cluster: Cluster, split: Lanes, lane: int, address: int, size: int, space: str, write: bool
) -> np.ndarray | None:
    """uint8 (size,) view of simulated memory; None, with a finding, if the access is not legal.

    The access is logged for the checks as an access of this lane.
    """
    code, inside = resolve(SPACES.get(space, SPACE_GENERIC), address)
    wrong, view, place = FAULT_MISALIGNED, None, 0
    if address % size == 0:
        wrong, view, place = _find(cluster, split, lane, code, inside, size)
    if wrong:
        cluster.reporter.fault(split.at(1 << lane), wrong, address, 1)
        return None
    if cluster.bus.heard and place:
        log = np.array([[split.row, split.warp * 32 + lane, place, 2 * size + int(write)]], np.int64)
        cluster.bus.accesses(cluster, log)
    return view


def _find(cluster: Cluster, split: Lanes, lane: int, space: int, address: int, size: int):
    """(fault or 0, view, place to log or 0) for an address that `resolve` returned."""
    if space == SPACE_GLOBAL:
        view, place = cluster.launch.memory.view(address, size), address
    elif space == SPACE_LOCAL:
        return FAULT_LOCAL, None, 0  # only ld and st reach it
    else:
        end = cluster.launch.shared_end
        wrong = shared_fault(space, address, size, split.cta, cluster.ctas, end)
        rank, offset = shared_place(address)
        view = None if wrong else cluster.shared[rank, offset : offset + size]
        return wrong, view, place_name(rank, offset)
    return FAULT_BOUNDS * (view is None or len(view) < size), view, place


def own_offsets(
    cluster: Cluster, split: Lanes, addresses: np.ndarray, size: int, space: str = "shared"
) -> np.ndarray | None:
    """Window offsets in the CTA's own shared memory of the int64 addresses of the split's first lanes.

    None, with a finding, if an address is misaligned, in another CTA, or has fewer than `size` bytes left.
    """
    rank, offsets = shared_place(addresses)
    other = rank != split.cta
    if SPACES.get(space, SPACE_GENERIC) == SPACE_GENERIC:
        other |= ~is_shared(addresses)
    for kind, wrong in (
        (FAULT_OTHER_CTA, other),
        (FAULT_MISALIGNED, offsets % size != 0),
        (FAULT_BOUNDS, ~in_window(offsets, size, cluster.launch.shared_end)),
    ):
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            lane = int(split.lanes[at]) if at < len(split.lanes) else at
            where = split.at(1 << lane)
            cluster.reporter.fault(where, kind, int(addresses[at]), int(wrong.sum()))
            return None
    return offsets


def tell_own(
    cluster: Cluster, split: Lanes, lanes, offsets: np.ndarray, size: int, stored: np.ndarray | None
) -> None:
    """Reports accesses to the CTA's own shared memory to observers; arguments as for log_own."""
    if cluster.bus.heard:
        cluster.bus.accesses(cluster, log_own(cluster, split, lanes, offsets, size, stored))


def log_own(
    cluster: Cluster, split: Lanes, lanes, offsets: np.ndarray, size: int, stored: np.ndarray | None = None
) -> np.ndarray:
    """Rows for `Observer.accesses`: lanes load at their offsets, or store `stored` (uint8 (lanes, size))."""
    log = log_rows(split, lanes, place_name(split.cta, offsets), size)
    if stored is not None:
        held = cluster.shared[split.cta][offsets[:, None] + np.arange(size)]
        places, one = np.unique(offsets, return_inverse=True)
        first, last = np.full(len(places), len(one)), np.zeros(len(places), int)
        np.minimum.at(first, one, np.arange(len(one)))
        np.maximum.at(last, one, np.arange(len(one)))  # its value is the one that remains
        remains, again = stored[last[one]], first[one] < np.arange(len(one))
        differs = (stored != remains).any(axis=1)
        log[:, LOG_SIZE] += 1 + LOG_SAME * (held == remains).all(axis=1) + LOG_AGAIN * again
        log[last, LOG_SIZE] += LOG_OPEN * (np.bincount(one, differs) > 0)
    return log


def log_rows(split: Lanes, lanes, places: np.ndarray, size: int, write: bool = False) -> np.ndarray:
    """Rows for `Observer.accesses`: these lanes load, or store, `size` bytes at their places."""
    log = np.empty((len(places), 4), np.int64)
    log[:, LOG_ROW], log[:, LOG_SIZE] = split.row, 2 * size + write
    log[:, LOG_THREAD], log[:, LOG_PLACE] = split.warp * 32 + lanes, places
    return log
