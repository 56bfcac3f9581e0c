"""PTX instructions -> rows: which kind of bytecode each becomes, what it reads and writes, where it jumps."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from ptxsim.frontend.ast import Function, Instr, Label, LabelDef, Mem, Pair, PtxError, Reg, Sym, Vec
from ptxsim.isa import memory_access
from ptxsim.isa.scalar import address
from ptxsim.isa.scalar import table as scalar
from ptxsim.isa.special_registers import CLOCKS
from ptxsim.isa.syntax import conform, syntax
from ptxsim.jit.bytecode import BRA, BRX, COLD, EXIT, LD, ST, UNIT
from ptxsim.lowering import cfg
from ptxsim.units.registry import UNITS, UnitSpec, find_unit

_CONTROL = {  # (forms, section of the PTX ISA)
    op: ((syntax(box),), f"9.7.12.{number}")
    for op, number, box in (
        ("bra", 3, "bra {.uni} target"),
        ("brx", 4, "brx.idx {.uni} index, targets"),
        ("ret", 6, "ret {.uni}"),
        ("exit", 7, "exit"),
    )
}
UNPACK = -1  # mov {a, b}, c: one scalar row per register


@dataclass
class Row:
    """One instruction, classified for lowering to bytecode."""

    instr: Instr | None
    kind: int
    op: scalar.ScalarOp | None = None
    unit: UnitSpec | None = None
    reads: list = field(default_factory=list)
    writes: list = field(default_factory=list)
    copies: dict[str, list[str]] = field(default_factory=dict)  # register filled later -> its copies by `mov`

    @property
    def given(self) -> Instr:
        """The instruction of a row that has one; all but the last row and joins do."""
        assert self.instr is not None
        return self.instr

    @property
    def leaves(self) -> bool:
        """Whether every lane that reaches this row exits the kernel."""
        return self.kind == EXIT and (self.instr is None or self.instr.pred is None)


def classify(function: Function) -> tuple[list[Row], dict[str, int]]:
    rows: list[Row] = []
    labels: dict[str, int] = {}
    for item in function.body:
        if isinstance(item, LabelDef):
            labels[item.name] = len(rows)
        else:
            with well_formed(item):
                rows.append(make_row(item))
    rows.append(Row(None, EXIT))
    return rows, labels


@contextlib.contextmanager
def well_formed(instr: Instr | None):
    """Turns exceptions inside the block, caused by missing or wrong operands, into a PtxError."""
    try:
        yield
    except (IndexError, AttributeError, KeyError, TypeError, StopIteration) as error:
        line, text = (instr.line, instr.text) if instr is not None else (0, "")
        raise PtxError("operands that this instruction does not take", line, text) from error


def make_row(instr: Instr) -> Row:
    """The row of one instruction. PtxError if it is not modelled."""
    if instr.op in _CONTROL:
        conform(instr, *_CONTROL[instr.op])
    if instr.op in ("ret", "exit"):
        return Row(instr, EXIT)
    if instr.op == "bra":
        return Row(instr, BRA)
    if instr.op == "brx":
        return Row(instr, BRX, reads=[instr.operands[0]])
    clock = instr.op == "mov" and isinstance(instr.operands[1], Reg) and instr.operands[1].name[1:] in CLOCKS
    spec = UNITS["clock"] if clock else find_unit(instr)
    if spec is not None:
        instr = spec.accept(instr)
        written = [
            i for i in spec.writes if i < len(instr.operands) and not isinstance(instr.operands[i], Mem)
        ]
        writes = [instr.operands[i] for i in written]
        reads = [o for i, o in enumerate(instr.operands) if i not in written]
        return Row(instr, UNIT, unit=spec, reads=reads, writes=writes)
    if instr.op in memory_access.FORMS:
        instr = memory_access.accept(instr)
        if instr.op == "st":
            return Row(instr, ST, reads=list(instr.operands[:2]))
        return Row(instr, LD, reads=[instr.operands[1]], writes=[instr.operands[0]])
    if instr.op == "mov" and isinstance(instr.operands[0], Vec):
        return Row(instr, UNPACK, writes=[instr.operands[0]], reads=[instr.operands[1]])
    op = address.resolve(instr) or scalar.resolve(instr)
    if op is None:
        raise PtxError(f"instruction {instr.op} is not modelled", instr.line, instr.text)
    wide = 1 if len(op.dst) == 1 or isinstance(instr.operands[0], Pair) else len(op.dst)
    return Row(instr, COLD, op=op, writes=list(instr.operands[:wide]), reads=list(instr.operands[wide:]))


def jumps(
    rows: list[Row], labels: dict[str, int], function: Function
) -> tuple[dict[int, list[int]], dict[int, bool]]:
    targets: dict[int, list[int]] = {}
    falls: dict[int, bool] = {}
    for position, row in enumerate(rows):
        if row.kind == EXIT:
            names: Sequence = ()
        elif row.kind == BRA:
            names = row.given.operands[:1]
        elif row.kind == BRX:
            names = branch_table(function, row.given)
        else:
            continue
        targets[position] = [jump_position(row.given, name, labels) for name in names]
        falls[position] = row.instr is not None and row.instr.pred is not None
    return targets, falls


def find_copies(rows: list[Row], blocks: list[cfg.Block]) -> None:
    """Finds copies of registers that tcgen05.ld fills. Compilers put plain `mov` copies between tcgen05.ld
    and its wait, which ptxas turns into the same register.

    Therefore the value that arrives at the wait is also written to the copies. Any other use before the wait
    reads garbage.
    """
    for block in blocks:
        pending: dict[str, list[str]] = {}
        for row in rows[block.start : block.end]:
            if row.unit is not None and row.unit.async_destination:
                items = [r for w in row.writes for r in (w.items if isinstance(w, Vec) else (w,))]
                pending |= {r.name: row.copies.setdefault(r.name, []) for r in items if isinstance(r, Reg)}
            elif row.op is not None and row.given.op == "mov" and row.given.pred is None:
                source = row.reads[0]
                if isinstance(source, Reg) and source.name in pending and isinstance(row.writes[0], Reg):
                    pending[source.name].append(row.writes[0].name)
            elif row.unit is not None and row.unit.name.startswith("tcgen05.wait"):
                pending = {}


def branch_table(function: Function, instr: Instr) -> list[Label]:
    """The targets of brx.idx."""
    return function.branchtargets[instr.operands[1].name]


def jump_position(instr: Instr, operand, labels: dict[str, int]) -> int:
    name = operand.name if isinstance(operand, Label | Sym) else None
    if name not in labels:
        raise PtxError(f"branch to unknown label {name}", instr.line, instr.text)
    return labels[name]
