"""Lanes that have left a loop in which the rest of their warp still is."""

from __future__ import annotations

from ptxsim.events.views import Cluster
from ptxsim.machine.endless import loop_around
from ptxsim.report.findings import Finding


def left_loop(cluster: Cluster, finding: Finding, warp: int, missing: int, row: int) -> str:
    """`line 176 to 204`: the loop of the instruction that the `missing` lanes did not come to, where `row`,
    which they have executed, is in it, and they are behind it; else "".
    """
    program, line = cluster.program, finding.where.get("ptx_line")
    at = next((r for r, i in enumerate(program.instrs) if i is not None and i.line == line), None)
    if at is None:
        return ""
    low, high = min(at, row), max(at, row)
    first, last = loop_around(program, low, high)
    if (first, last) == (low, high):  # there is none
        return ""
    held = (cluster.splits[index] for index in cluster.waits)
    stand = [split.row for split in held if split.warp == warp and split.mask & missing]
    if any(first <= r <= last for r in stand):
        return ""
    lines = [i.src for i in program.instrs[first : last + 1] if i is not None and i.src]
    return f"lines {min(lines)} to {max(lines)}" if lines else f"PTX line {program.instrs[first].line}"
