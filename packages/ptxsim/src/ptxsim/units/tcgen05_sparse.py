"""Sparse A of tcgen05.mma.sp (PTX ISA 9.7.16.10.8): reads its indices from tensor memory and inserts the
zeros.
"""

from __future__ import annotations

import numpy as np

from ptxsim.isa.layouts.sparsity import expanded, index_columns, indices
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
    try:
        found = indices(memory.cells, kind, column)
    except ValueError as error:
        hint = "each chunk has two 2-bit positions, the lower one first (PTX ISA 9.7.16.10.8)"
        cluster.reporter.add("illegal", "error", f"tcgen05.mma.sp: {error}", hint, op.where, key="mma-index")
        return None
    return expanded(stored, found, kind)
