"""D of tcgen05.mma (PTX ISA 9.7.16.10.5): its rectangles in tensor memory, and writing a product to them."""

from __future__ import annotations

import functools

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.isa.layouts.tmem import result_layout
from ptxsim.isa.number_formats import canonical_nans
from ptxsim.jit.simd_matrix import accumulate
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.tensor_memory import COLUMNS, LANES, NEVER_WRITTEN
from ptxsim.units.tcgen05_alloc import freed_by, unwritten


@functools.lru_cache(maxsize=64)
def result_blocks(m: int, n: int, group: int, ws: bool) -> tuple:
    """D of one CTA as rectangles: (first lane, first row of D, rows, first TMEM column, first column of D,
    columns).
    """
    _, lane, column = result_layout(m, n, group, ws)
    lane, column = lane[: m // group], column[: m // group]
    row_cuts = [0, *(np.flatnonzero(np.diff(lane[:, 0]) != 1) + 1), m // group]
    column_cuts = [0, *(np.flatnonzero(np.diff(column[0]) != 1) + 1), n]
    return tuple(
        (int(lane[r, c]), int(r), int(r_end - r), int(column[r, c]), int(c), int(c_end - c))
        for r, r_end in zip(row_cuts, row_cuts[1:], strict=False)
        for c, c_end in zip(column_cuts, column_cuts[1:], strict=False)
    )


def _not_allocated(cluster: Cluster, op, rank: int, start: int, columns: int) -> None:
    if (op.task.lane << 16 | op.task.column) == NEVER_WRITTEN:
        unwritten(cluster, op.where, "tcgen05.mma")
        return
    have, hint = cluster.tmem[rank].shortage(start, columns)
    message = f"tcgen05.mma writes TMEM columns {start}..{start + columns - 1} of CTA {rank}, "
    gone = "" if have else freed_by(cluster, rank, start)
    message += f"but {have}" if have else gone or "which are not (all) allocated"
    usual = hint or "allocate before the first MMA, free after the last read"
    remedy = CAUSES["freed-early"] if gone else usual
    cluster.reporter.add("tmem-alloc", "error", message, remedy, op.where, key="mma-d")


def write_result(cluster: Cluster, op, rank: int, index: int, product: np.ndarray) -> None:
    """Adds a product to D in the tensor memory of one CTA, or overwrites D."""
    own, memory = op.task, cluster.tmem[rank]
    blocks = result_blocks(own.shape.m, own.shape.n, own.group, own.ws)
    for lane, row, rows, tmem_column, column, columns in blocks:
        start, first = own.column + tmem_column, own.lane + lane
        if not memory.allocated(start, columns):
            _not_allocated(cluster, op, rank, start, columns)
            if start + columns > COLUMNS:
                return
        rows = max(0, min(rows, LANES - first))
        keep = _enabled(op, index, slice(first, first + rows))
        for i, count in [(0, rows)] if keep is None else [(i, 1) for i in np.flatnonzero(keep)]:
            _store(memory, op, product, (first + i, start), (row + i, column), (count, columns))


def _enabled(op, index: int, block: slice) -> np.ndarray | None:
    if not op.partial:
        return None
    masks = op.task.disabled
    masks = masks[index * 4 : index * 4 + 4] if len(masks) == 8 else masks
    bits = np.array([(int(m) >> i) & 1 for m in masks for i in range(32)], bool)
    return ~bits[block]


def _store(memory, op, product: np.ndarray, cell: tuple, entry: tuple, size: tuple) -> None:
    """Stores a block of the product, `size` (rows, columns) from `entry` on, to tensor memory at `cell`."""
    kind, factor = op.task.shape.d_type, np.float32(0.5**op.task.d_scale)
    (lane, column), (row, first), (rows, columns) = cell, entry, size
    block = slice(lane, lane + rows), slice(column, column + columns)
    if kind == "f32":
        if op.accumulates and op.task.d_scale:
            with np.errstate(invalid="ignore"):
                memory.floats[block] *= factor
        accumulate(memory.floats, product, cell, entry, size, op.accumulates)
        return
    target = memory.cells[block]
    product = product[row : row + rows, first : first + columns]
    if kind == "s32":
        view = target.view(np.int32)
        view[:] = view + product if op.accumulates else product
    else:
        old = target.astype(np.uint16).view(np.float16).astype(np.float32) * factor if op.accumulates else 0
        with np.errstate(invalid="ignore", over="ignore"):
            target[:] = canonical_nans((product + old).astype(np.float16)).view(np.uint16)
