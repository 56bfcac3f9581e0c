"""Accesses by two clusters of a grid: only flags and atomics with fences can order them (PTX ISA 8.8)."""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.diagnosis.unseen_arrival import Edge, edge
from ptxsim.checks.phrases import source_line
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.static_flow import reachable
from ptxsim.frontend.ast import Instr
from ptxsim.isa.memory_access import ordering

_UNORDERED = "they are in different clusters of the grid, which nothing orders"


def between_clusters(races, pair: AccessPair) -> Edge:
    """What is missing between an access by an earlier cluster and one by this cluster."""
    program, first, second = races.launch.program, pair.first, pair.second
    teller = _teller(program, second.row) if (first.verb, second.verb) == ("write", "read") else None
    if teller is None:
        cause = CAUSES["variable-of-all" if pair.buffer in races.launch.variables else "other-cta"]
        return Edge(cause, _UNORDERED)
    released = any(first.cluster in seen for seen in races.threads.flags_seen.values())
    missing = "nothing acquires after it" if released else "nothing releases the write before it"
    return edge("hands-nothing-on", line=source_line(program, teller), missing=missing)


def _teller(program, later: int) -> int | None:
    """The last instruction in the text that may tell a thread on its way to row `later` of other clusters."""
    rows = [row for row, instr in enumerate(program.instrs) if row != later and _asks(instr)]
    return next((row for row in reversed(rows) if later in reachable(program, row)), None)


def _asks(instr: Instr | None) -> bool:
    """Whether an instruction reads a flag or counter that threads of other clusters may set."""
    how = ordering(instr)
    wide = how.strong and how.reads and not how.narrow
    return wide and instr is not None and not any(mod.startswith("shared") for mod in instr.mods)
