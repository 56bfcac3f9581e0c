"""Registers that a kernel may read before it has written them: on a chip they hold leftovers of another
launch.

A static analysis: there is a path from the entry to the read on which nothing certainly writes the register.
A guarded instruction does not count as a write, unless the read has the same guard. PTX ISA 5.1.1: registers
are not initialised.
"""

from __future__ import annotations

from collections import defaultdict

from ptxsim.frontend.ast import Function, Instr, Module, Pred, registers_of
from ptxsim.isa.syntax import explain_newer
from ptxsim.lowering import cfg
from ptxsim.lowering.instruction_selection import Row, classify, jumps
from ptxsim.lowering.plain_form import plain_form


def unset_reads(module: Module, kernel: str) -> dict[str, Instr]:
    """Register or predicate -> the first instruction that may read it unset. PtxError for the same reasons as
    when a module is loaded.
    """
    with explain_newer(module.version):
        function = plain_form(module.functions[kernel], module)
        rows, labels = classify(function)
        blocks = cfg.build_blocks(len(rows), *jumps(rows, labels, function))
    needs = [one for block in blocks for one in _needed(rows[block.start : block.end], function)]
    written = [set() if _guard(row) else _names(row.writes, function) for row in rows]
    index = {name: at for at, name in enumerate(sorted(set().union(*needs, *written)))}
    uses, kills = ([sum(1 << index[name] for name in names) for names in part] for part in (needs, written))
    unset = cfg.live_at_start(blocks, uses, kills)[0]
    found: dict[str, Instr] = {}
    for row, names in zip(rows, needs, strict=True):
        found |= {n: row.given for n in sorted(names) if n not in found and unset >> index[n] & 1}
    return found


def _needed(rows: list[Row], function: Function) -> list[set[str]]:
    """What each row of a block reads, except what an earlier row wrote under the same guard."""
    needed = []
    sure: dict[Pred | None, set[str]] = defaultdict(set)
    for row in rows:
        guard, written = _guard(row), _names(row.writes, function)
        read = _names(row.reads, function) - sure[guard]
        if row.instr is not None and row.instr.op == "wgmma":
            read |= written  # it adds to them
        needed.append(read | _names([guard], function))
        for other in [one for one in sure if one is not None and one.reg.name in written]:
            del sure[other]
        sure[guard] |= written
    return needed


def _guard(row: Row) -> Pred | None:
    return row.instr.pred if row.instr is not None else None


def _names(operands: list, function: Function) -> set[str]:
    return set(registers_of(operands)) & function.regs.keys()
