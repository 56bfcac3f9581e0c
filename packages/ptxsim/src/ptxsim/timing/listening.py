"""Whether the control flow of a cluster may depend on what other clusters write to global memory.

Reductions, and atomics whose result is not read, give other clusters data but receive none. A GEMM with split
K ends with them, and each of its clusters can still be run alone.
"""

from __future__ import annotations

from ptxsim.grid.co_resident import any_talks, talks
from ptxsim.timing.instructions import describe


def listens(program) -> bool:
    """Whether a program reads from global memory what another cluster may just have written."""
    if not talks(program):
        return False
    rows = [(i, describe(i)) for i in program.by_row.values()]
    read = {name for _, row in rows for name in row.reads}
    asking = [i for i, row in rows if i.op == "ld" or i.op == "atom" and read.intersection(row.writes)]
    return any_talks(asking)
