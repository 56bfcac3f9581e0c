"""How many clusters are resident on an SM, or on a group of SMs as large as a cluster."""

from __future__ import annotations

import math

from ptxsim.machine.occupancy import SM_CTAS, SM_THREADS
from ptxsim.machine.tensor_memory import COLUMNS
from ptxsim.timing.chip import Chip

REGISTERS = 65536  # of an SM (CUDA C++ guide, compute capabilities 9.0 and 10.0)
RESERVED = 1024  # bytes of shared memory that the system reserves per CTA


def resident(chip: Chip, threads: int, shared_bytes: int, registers: int, columns: int) -> int:
    """Resident CTAs of an SM. registers: per thread, 0 if unknown; columns: of TMEM that a CTA allocates."""
    warps = math.ceil(threads / 32)
    limits = [SM_CTAS, SM_THREADS // (warps * 32), int(chip.shared_bytes) // (shared_bytes + RESERVED)]
    if registers:
        limits.append(REGISTERS // (warps * 32 * math.ceil(registers / 8) * 8))
    if columns:
        limits.append(COLUMNS // columns)
    return max(1, min(limits))
