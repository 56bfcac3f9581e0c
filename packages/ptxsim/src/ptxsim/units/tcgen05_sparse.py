"""Sparse A of tcgen05.mma.sp (PTX ISA 9.7.16.10.8): reads its indices from tensor memory and inserts the
zeros.
"""

from __future__ import annotations

import numpy as np

from ptxsim.isa.layouts.sparsity import FIRST, expanded, index_columns, indices, undefined
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.tensor_memory import split_address


def metadata_columns(op) -> list[tuple[int, int]]:
    """(first column, columns) of the metadata in each CTA; empty for a dense MMA."""
    if op.metadata < 0:
        return []
    return [index_columns(op.shape.a_type, split_address(op.metadata)[1], op.shape.selector)]


def dense(cluster: Cluster, op, rank: int, stored: np.ndarray) -> np.ndarray | None:
    """float32 (rows, K): A of one CTA with its zeros; None, with a finding, if its metadata is not in
    allocated columns or not legal.
    """
    lane, _ = split_address(op.task.metadata)
    ((column, columns),) = metadata_columns(op.task)
    memory, kind = cluster.tmem[rank], op.task.shape.a_type
    if lane or not memory.allocated(column, columns):
        message = f"tcgen05.mma.sp reads its metadata from lane {lane}, columns {column}.."
        message += f"{column + columns - 1} of CTA {rank}, which are not (all) allocated from lane 0 on"
        cluster.reporter.add("tmem-alloc", "error", message, "", op.where, key="mma-metadata")
        return None
    found = indices(memory.cells, kind, column)
    wrong = undefined(found, kind)
    empty = ~stored.reshape(*found.shape, -1).any(2)
    _report(cluster, op, found, wrong & empty, "review")
    if _report(cluster, op, found, wrong & ~empty, "error"):
        return None
    return expanded(stored, np.where(wrong, FIRST, found), kind)


def _report(cluster: Cluster, op, found: np.ndarray, wrong: np.ndarray, severity: str) -> bool:
    """Reports the first wrong index, if any. Where only zeros are stored it is a review: CUTLASS's compressor
    gives such chunks 0b0000, and its sparse GEMMs are right on chips.
    """
    if not wrong.any():
        return False
    row, chunk = (int(x[0]) for x in np.nonzero(wrong))
    message = f"tcgen05.mma.sp: metadata of row {row}, chunk {chunk}: {found[row, chunk]:#06b} is not valid"
    if severity == "review":
        message += "; only zeros are stored there, so chips compute the right product"
    hint = "each chunk has two 2-bit positions, the lower one first (PTX ISA 9.7.16.10.8)"
    cluster.reporter.add("illegal", severity, message, hint, op.where, key=("mma-index", severity))
    return True
