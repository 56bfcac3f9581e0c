"""Registers of a tcgen05.ld that are read before its tcgen05.wait::ld (PTX ISA 9.7.16.8.1).

Found in the text, reported when the load runs. A plain `mov` is no use: ptxas makes such copies one register.
"""

from __future__ import annotations

from collections import deque

from ptxsim.checks.protocol import Observer
from ptxsim.checks.signals import next_rows, targets
from ptxsim.parser import Instr, Mem, Pair, Paren, Reg, Vec

_HINT = "tcgen05.wait.ld comes between tcgen05.ld and the first use of its registers"


class LoadedRegisters(Observer):
    def __init__(self, launch, reporter):
        self.reporter = reporter
        self.early = early_uses(launch.program)

    def tmem_issue(self, cluster, split, kind: str, registers: tuple) -> None:
        row = self.early.get(split.row) if kind == "ld" else None
        if row is not None:
            line = self.reporter.line_text(cluster.program.instrs[row])
            message = (
                f"a register of this tcgen05.ld is read ({line}) before tcgen05.wait::ld, without a value"
            )
            self.reporter.add("async-pending", "error", message, _HINT, split, key="early")


def early_uses(program) -> dict[int, int]:
    """Row of a tcgen05.ld -> first row found that reads one of its registers on a way without a wait."""
    found = {}
    for row, instr in enumerate(program.instrs):
        if instr is not None and instr.op == "tcgen05" and instr.mods[0] == "ld":
            use = _first_use(program, row, frozenset(targets(instr)))
            if use is not None:
                found[row] = use
    return found


def _first_use(program, start: int, names: frozenset) -> int | None:
    arriving = {row: names for row in next_rows(program, start)}
    todo = deque(arriving)
    while todo:
        row = todo.popleft()
        instr, pending = program.instrs[row], arriving[row]
        if instr is not None:
            if instr.op == "tcgen05" and instr.mods[0] == "wait::ld":
                continue
            read, written = pending & _reads(instr), frozenset(targets(instr))
            copies = instr.op == "mov" and instr.pred is None and isinstance(instr.operands[1], Reg)
            if read and not copies:
                return row
            pending = pending | written if read else pending - written if instr.pred is None else pending
        for after in next_rows(program, row) if pending else ():
            known = arriving.get(after, frozenset())
            if not pending <= known:
                arriving[after] = known | pending
                todo.append(after)
    return None


def _reads(instr: Instr) -> frozenset:
    written = targets(instr)
    sources = instr.operands[1:] if written else instr.operands
    return frozenset(_names(list(sources)))


def _names(operands: list) -> set[str]:
    names: set[str] = set()
    for operand in operands:
        if isinstance(operand, Reg):
            names.add(operand.name)
        elif isinstance(operand, Vec | Paren):
            names |= _names(list(operand.items))
        elif isinstance(operand, Pair):
            names |= _names([operand.first, operand.second])
        elif isinstance(operand, Mem):
            names |= _names([operand.base, *operand.parts])
    return names
