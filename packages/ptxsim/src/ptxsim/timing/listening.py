"""Whether a cluster's way may depend on what others leave in global memory.

Reductions, and atomics whose result nobody reads, tell others something and ask for nothing: a product that
is split along K ends with them, and its clusters run alone as well as together.
"""

from __future__ import annotations

from ptxsim.grid.co_resident import any_talks, talks
from ptxsim.timing.instructions import describe


def listens(program) -> bool:
    """Does it read from global memory what another cluster may just have written?"""
    if not talks(program):
        return False
    rows = [(i, describe(i)) for i in program.instrs if i is not None]
    read = {name for _, row in rows for name in row.reads}
    asking = [i for i, row in rows if i.op == "ld" or i.op == "atom" and read.intersection(row.writes)]
    return any_talks(asking)
