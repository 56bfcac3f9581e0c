"""What becomes of a loaded value: whether it decides anything.

A volatile or relaxed load that races with a strong store is no race by PTX (8.7.1): flags are polled so. One
that reads data, as in a reduction by lanes that do not wait for each other, still computes with whatever is
there: nothing makes the store come first.

Lanes that store different values to one place in one instruction elect one of them if what remains is then
compared with what they have stored.
"""

from __future__ import annotations

import functools

from ptxsim.checks.static_flow import follow, targets
from ptxsim.frontend.ast import Instr
from ptxsim.lowering.emit import Program

_NO_ORDER = {"volatile", "relaxed"}


@functools.lru_cache(maxsize=16)
def data_loads(program: Program) -> frozenset[int]:
    """Rows of loads by which a thread neither asks for a flag nor acquires."""
    rows = (row for row, instr in program.by_row.items() if _strong_load(instr))
    return frozenset(row for row in rows if not _decides(program, frozenset(targets(program.by_row[row]))))


def _strong_load(instr: Instr) -> bool:
    return instr.op == "ld" and bool(_NO_ORDER & set(instr.mods)) and "mmio" not in instr.mods


def compared(program: Program, row: int) -> bool:
    """Whether what the instruction at `row` loads reaches a guard or a comparison for equality."""
    return _decides(program, frozenset(targets(program.by_row[row])), True)


@functools.lru_cache(maxsize=256)
def _decides(program: Program, registers: frozenset[str], equal: bool = False) -> bool:
    """Whether the values of these registers reach a guard or something that is not followed, or, if `equal`,
    a comparison for equality.
    """
    known = set(registers)
    users = [program.by_row[row] for row in follow(program, known)]
    if any(i.op in ("call", "brx") or i.pred is not None and i.pred.reg.name in known for i in users):
        return True
    return equal and any(i.op in ("setp", "set") and {"eq", "ne"} & set(i.mods) for i in users)
