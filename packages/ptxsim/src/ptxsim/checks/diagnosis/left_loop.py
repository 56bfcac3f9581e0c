"""Lanes that have left a loop in which the rest of their warp still runs."""

from __future__ import annotations

from ptxsim.checks.phrases import source_lines
from ptxsim.events.views import Cluster
from ptxsim.machine.endless import loop_around


def left_loop(cluster: Cluster, warp: int, missing: int, lacking: int, done: int) -> str:
    """`lines 176 to 204`: the loop that the `missing` lanes of a warp have left, if it contains both the row
    `lacking`, which they never reached, and the row `done`, which they have executed; else "".
    """
    program, low, high = cluster.program, min(lacking, done), max(lacking, done)
    first, last = loop_around(program, low, high)
    if (first, last) == (low, high):  # no such loop
        return ""
    held = (cluster.splits[index] for index in cluster.waits)
    stand = [split.row for split in held if split.warp == warp and split.mask & missing]
    if any(first <= row <= last for row in stand):
        return ""
    return source_lines(program, first, last) or f"PTX line {program.instrs[first].line}"
