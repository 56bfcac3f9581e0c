"""Fragments of one matrix that a wmma instruction uses as those of another.

A fragment may be passed from one wmma instruction to another only if shape, element type, matrix (A, B or
accumulator) and, for A and B, the layout are the same (PTX ISA 9.7.14.4.1). Found in the program text, for
registers that only one instruction sets; reported when the wmma.load or wmma.store of the pair runs.
"""

from __future__ import annotations

import functools

import numpy as np

from ptxsim.checks.static_flow import definitions
from ptxsim.events.observer import Observer
from ptxsim.events.views import Cluster, Launch
from ptxsim.frontend.ast import Instr, Reg, Vec
from ptxsim.jit import bytecode
from ptxsim.lowering.emit import Program
from ptxsim.machine.register_files import WHOLE_WARP
from ptxsim.report.findings import Reporter

_SIDES = ("row", "col")
_HINT = "what a thread holds of a matrix depends on its shape, type and layout: load it as it is used"


class WmmaFragments(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter, self.wrong = reporter, mistaken(launch.program)
        self.rows = np.array(sorted(self.wrong), np.int64)
        self.on = bool(self.wrong)

    def accesses(self, cluster: Cluster, log: np.ndarray) -> None:
        rows = log[:, bytecode.LOG_ROW]
        for at in np.flatnonzero(np.isin(rows, self.rows)):
            thread, row = int(log[at, bytecode.LOG_THREAD]), int(rows[at])
            made, other, taken = self.wrong[row]
            message = f"a fragment of {made} is used as one of {taken} ({self.reporter.line_text(other)})"
            where = cluster.splits[thread // 32 * 32].at(WHOLE_WARP, row)
            self.reporter.add("illegal", "error", message, _HINT, where, key=("wmma fragment", row))


@functools.lru_cache(maxsize=16)
def mistaken(program: Program) -> dict[int, tuple[str, Instr, str]]:
    """Row of a wmma.load or wmma.store -> (matrix that was loaded or computed, instruction at the other
    end, matrix that was stored or multiplied).
    """
    rows = {row: one for row, one in program.by_row.items() if one.op == "wmma"}
    found, writers = {}, definitions(program) if rows else {}
    for row, instr in rows.items():
        for names, taken in _takes(instr):
            sources = {at for name in names for at in writers[name] if len(writers[name]) == 1}
            for source in sources & rows.keys():
                made = _makes(rows[source])
                if made != taken:
                    place, other = (source, instr) if rows[source].mods[0] == "load" else (row, rows[source])
                    found[place] = made, other, taken
    return found


def _types(instr: Instr) -> list[str]:
    """Element types of a wmma.mma: of D, A, B and C."""
    at = next(i for i, m in enumerate(instr.mods) if m[0] == "m" and m[1].isdigit())
    kinds = [m for m in instr.mods[at + 1 :] if m[0] in "fbtsu" and m[-1].isdigit()]
    return kinds if len(kinds) == 4 else [kinds[0], "f16", "f16", kinds[1]]


def _matrix(instr: Instr, which: str, side: str, kind: str) -> str:
    shape = next(m for m in instr.mods if m[0] == "m" and m[1].isdigit())
    return ".".join(filter(None, (which, shape, side, kind)))


def _makes(instr: Instr) -> str:
    """The matrix whose fragment a wmma.load or wmma.mma puts into its first operand."""
    if instr.mods[0] == "mma":
        return _matrix(instr, "accumulator", "", _types(instr)[0])
    which, side = instr.mods[1], next(m for m in instr.mods if m in _SIDES)
    named, side = ("accumulator", "") if which == "c" else (which.upper(), side)
    return _matrix(instr, named, side, instr.mods[-1])


def _takes(instr: Instr) -> list[tuple[list[str], str]]:
    """(registers, matrix) of every fragment that a wmma instruction reads."""
    if instr.mods[0] == "load":
        return []
    if instr.mods[0] == "store":
        return [(_names(instr.operands[1]), _matrix(instr, "accumulator", "", instr.mods[-1]))]
    sides, (_, a, b, c) = [m for m in instr.mods if m in _SIDES], _types(instr)
    taken = (("A", sides[0], a), ("B", sides[1], b), ("accumulator", "", c))
    return [
        (_names(operand), _matrix(instr, *what))
        for operand, what in zip(instr.operands[1:], taken, strict=True)
    ]


def _names(operand) -> list[str]:
    items = operand.items if isinstance(operand, Vec) else (operand,)
    return [item.name for item in items if isinstance(item, Reg)]
