"""Separates loads of unwritten local memory, which the main loop logs among all accesses."""

from __future__ import annotations

import numpy as np

from ptxsim.isa.address_map import is_local
from ptxsim.jit import bytecode


def without_local(cluster, log: np.ndarray) -> np.ndarray:
    """The log without loads of unwritten local memory; they are first reported as an event of their own."""
    if not cluster.program.local_bytes:
        return log
    local = is_local(log[:, bytecode.LOG_PLACE])
    if not local.any():
        return log
    cluster.bus.local_accesses(cluster, log[local])
    return log[~local]
