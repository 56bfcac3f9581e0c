"""A parsed PTX function -> Program: register slots, a row of integers per instruction, handlers of units.

Registers, constants and special registers all become slots of one register file, so that every operand of
every instruction is read the same way. Registers whose live ranges do not overlap share a slot. There is a
row JOIN wherever diverged lanes of a warp must meet again (the immediate post-dominator of a conditional
branch).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ptxsim.frontend.ast import Function, Instr, Mem, Module, Pair, PtxError, Reg, Sym, Vec
from ptxsim.isa.address_map import PARAM_WINDOW
from ptxsim.isa.memory_access import STRONG, access_form
from ptxsim.isa.operands import CARRY, TYPE_BITS, type_bits
from ptxsim.isa.scalar import address
from ptxsim.isa.scalar import table as scalar
from ptxsim.isa.syntax import explain_newer
from ptxsim.jit.bytecode import (
    BRA,
    BRX,
    CALLED_BLOCK,
    CALLED_HEARD,
    COLD,
    COLUMNS,
    EXIT,
    FAST_CALLED,
    FAST_EITHER,
    FAST_ISSUE,
    GUARD,
    IMM,
    JOIN,
    LD,
    ONLY_OBSERVED,
    OP,
    OPERAND_COLUMNS,
    ST,
    UNIT,
    UNIT_FORM,
)
from ptxsim.jit.called import ParameterBlock, address_of
from ptxsim.jit.loop_memory import WHOLE_WARP
from ptxsim.lowering import cfg
from ptxsim.lowering.answers import asked_again
from ptxsim.lowering.early_arrivals import with_early_arrivals
from ptxsim.lowering.fast_unit_forms import fast_columns, issued_slots
from ptxsim.lowering.instruction_selection import (
    UNPACK,
    Row,
    branch_table,
    classify,
    find_copies,
    jump_position,
    jumps,
    make_row,
    well_formed,
)
from ptxsim.lowering.meeting_points import meeting_points
from ptxsim.lowering.plain_form import plain_form
from ptxsim.lowering.register_allocation import RegisterAllocator
from ptxsim.machine.kept_cluster import KeptCluster
from ptxsim.units.registry import FastForm, gathers


@dataclass(eq=False)
class Program:
    name: str
    code: np.ndarray  # int64 (rows, COLUMNS)
    lists: np.ndarray  # int32, slot lists of vector loads and stores, and brx targets
    instrs: list[Instr | None]  # per row
    handlers: list[Callable | None]  # per row, of unit instructions
    args: list  # per row, the arguments of unit instructions' handlers: resolved operands, prepared
    cold: list[scalar.ScalarOp]  # operations outside the main loop; column IMM of COLD rows is the index
    slots: RegisterAllocator
    function: Function
    local_offsets: dict[str, int]
    local_bytes: int
    copies: dict[int, list[tuple[int, int]]]  # row of a deferred load -> (its slot, slot of a copy)
    called: list[tuple[int, FastForm]]  # rows whose compiled code the main loop will call
    blocks: list[ParameterBlock] = field(default_factory=list)  # the parameters of that code
    kept_cluster: KeptCluster = field(default_factory=KeptCluster)
    special_values: dict[tuple, np.ndarray] = field(default_factory=dict)  # for the shape of the last launch

    def link(self) -> None:
        """Puts the addresses of compiled code into the rows for which the main loop can call it."""
        while self.called:
            row, form = self.called.pop()
            block = form.encode(self.instrs[row], self.args[row], self.slots.unset)
            if block is not None:
                self.blocks.append(block)
                kind = FAST_EITHER if self.code[row, UNIT_FORM] == FAST_ISSUE else FAST_CALLED
                columns = [UNIT_FORM, IMM, CALLED_BLOCK, CALLED_HEARD]
                self.code[row, columns] = kind, address_of(form.called), block.address, form.unheard

    @functools.cached_property
    def by_row(self) -> dict[int, Instr]:
        """Row -> its instruction; not the rows that lowering has added."""
        return {row: instr for row, instr in enumerate(self.instrs) if instr is not None}

    @functools.cached_property
    def gathers(self) -> list[bool]:
        """Per row: whether the main loop does it for several warps at once."""
        kinds = self.code[:, OP].tolist()
        return [kind == UNIT and gathers(i) for i, kind in zip(self.instrs, kinds, strict=True)]

    @functools.cached_property
    def guards(self) -> list[int]:
        """Per row: the code of its guard predicate, 0 for none."""
        return self.code[:, GUARD].tolist()

    @functools.cached_property
    def several_files(self) -> bool:
        """Whether messages name lines of more than one file."""
        return len({i.at.file for i in self.by_row.values() if i.src}) > 1

    @functools.cached_property
    def uses_tmem(self) -> bool:
        return any(i.op == "tcgen05" for i in self.by_row.values())

    @functools.cached_property
    def is_mma(self) -> list[bool]:
        """Per row: whether it is a tcgen05.mma."""
        return [i is not None and (i.op, *i.mods[:1]) == ("tcgen05", "mma") for i in self.instrs]

    @functools.cached_property
    def issued_slots(self) -> list[list[int]]:
        """Per row: the slots whose values the main loop queues for a unit, ~slot for predicates."""
        return issued_slots(self.code, self.lists.tolist())

    @functools.cached_property
    def plain_loads(self) -> set[int]:
        """Rows of loads that are not strong operations (PTX ISA 8.4)."""
        return {row for row, i in self.by_row.items() if i.op == "ld" and not STRONG & set(i.mods)}

    @functools.cached_property
    def whole_warp(self) -> list[bool]:
        """Per row: whether it is an instruction for all lanes of a warp."""
        forms = [(i.op, *i.mods) if i is not None else () for i in self.instrs]
        return ["aligned" in form or form[:1] == ("bar",) and form[1:2] != ("warp",) for form in forms]

    @functools.cached_property
    def asked_again(self) -> frozenset[int]:
        """Rows of mbarrier waits that a polling loop repeats until they succeed."""
        return asked_again(self)


def lower(function: Function, module: Module, hot: dict[str, int]) -> Program:
    """The Program of a function, or PtxError. hot: key -> number of the main loop's scalar operations."""
    with explain_newer(module.version):
        return _lower(plain_form(function, module), module, hot)


def _lower(function: Function, module: Module, hot: dict[str, int]) -> Program:
    rows, labels = classify(function)
    targets, falls = jumps(rows, labels, function)
    blocks = cfg.build_blocks(len(rows), targets, falls)
    find_copies(rows, blocks)
    slots = RegisterAllocator(function, module)
    slots.allocate(blocks, rows)
    return _Emitter(function, rows, labels, blocks, slots, hot).emit()


class _Emitter:
    """Numbers the rows and fills in the bytecode."""

    def __init__(self, function, rows, labels, blocks, slots: RegisterAllocator, hot: dict[str, int]):
        self.function, self.rows, self.labels, self.blocks = function, rows, labels, blocks
        self.slots, self.hot = slots, hot
        self.code: list[list[int]] = []
        self.lists: list[int] = []
        self.instrs: list[Instr | None] = []
        self.handlers: list[Callable | None] = []
        self.args: list = []
        self.cold: dict[str, int] = {}
        self.cold_ops: list[scalar.ScalarOp] = []
        self.join_rows: dict[int, int] = {}  # block -> row of its JOIN
        self.rejoins: dict[int, int] = {}  # start of a block -> row of the JOIN for lanes that diverge in it
        self.row_of: dict[int, int] = {}  # position -> row
        self.copies: dict[int, list[tuple[int, int]]] = {}
        self.called: list[tuple[int, FastForm]] = []
        self._emit_of = {
            UNPACK: self._unpack,
            EXIT: self._exit,
            BRA: self._bra,
            BRX: self._brx,
            UNIT: self._unit,
            LD: self._access,
            ST: self._access,
            COLD: self._scalar,
        }

    def emit(self) -> Program:
        self._number()
        for b, block in enumerate(self.blocks):
            if b in self.join_rows:
                self._put(None, JOIN)
            for position in block.positions:
                row = self.rows[position]
                with well_formed(row.instr):
                    self._emit_of[row.kind](row, block)
        code = with_early_arrivals(np.array(self.code, dtype=np.int64).reshape(-1, COLUMNS), self.instrs)
        return Program(
            self.function.name,
            code,
            np.array(self.lists or [0], dtype=np.int32),
            self.instrs,
            self.handlers,
            self.args,
            self.cold_ops,
            self.slots,
            self.function,
            self.slots.local_offsets,
            self.slots.local_bytes,
            self.copies,
            self.called,
        )

    def _number(self) -> None:
        leaving = {b for b, block in enumerate(self.blocks) if self.rows[block.start].leaves}
        meets = meeting_points(self.blocks, leaving)
        joins = {meets[b] for b, block in enumerate(self.blocks) if len(block.next) > 1} - {cfg.EXIT}
        row = 0
        for b, block in enumerate(self.blocks):
            if b in joins:
                self.join_rows[b] = row
                self.row_of[block.start] = row
                row += 1
            for position in block.positions:
                self.row_of.setdefault(position, row)
                row += self._lines(self.rows[position])
        self.rejoins = {
            block.start: self.join_rows.get(meet, -1) for block, meet in zip(self.blocks, meets, strict=True)
        }

    def _lines(self, row: Row) -> int:
        """The number of bytecode rows that an instruction becomes."""
        if row.kind == UNPACK:
            return len(row.writes[0].items)
        return 2 if row.op is not None and self._needs_widening(row) else 1

    def _put(self, instr: Instr | None, op: int, handler=None, args=(), **columns: int) -> list[int]:
        line = [0] * COLUMNS
        line[OP] = op
        line[GUARD] = self.slots.predicate(instr.pred) if instr is not None and instr.pred is not None else 0
        for name, value in columns.items():
            line[OPERAND_COLUMNS[name]] = value
        self.code.append(line)
        self.instrs.append(instr)
        self.handlers.append(handler)
        self.args.append(args)
        return line

    def _exit(self, row: Row, block) -> None:
        self._put(row.instr, EXIT)

    def _bra(self, row: Row, block) -> None:
        target = self.row_of[jump_position(row.given, row.given.operands[0], self.labels)]
        line = self._put(row.given, BRA, imm=target, rejoin=self.rejoins[block.start])
        if len(block.next) == 1:
            line[GUARD] = 0  # guarded or not, every lane goes there: no divergence

    def _brx(self, row: Row, block) -> None:
        start = len(self.lists)
        items = branch_table(self.function, row.given)
        self.lists += [self.row_of[jump_position(row.given, t, self.labels)] for t in items]
        if len(block.next) == 1:
            self._put(row.given, BRA, imm=self.lists[start])
            return
        index = self.slots.value(row.given.operands[0], "u32")
        columns = {"brx_index": index, "brx_table": start, "brx_targets": len(items)}
        self._put(row.given, BRX, rejoin=self.rejoins[block.start], **columns)

    def _unit(self, row: Row, block) -> None:
        instr, unit = row.given, row.unit
        assert unit is not None
        handler = unit.factory(instr)
        types = _value_type(instr)
        args = tuple(self._resolve(o, types) for o in instr.operands)
        registers = self.slots.registers
        pairs = [(registers[a], registers[b]) for a, copies in row.copies.items() for b in copies]
        if pairs:
            self.copies[len(self.code)] = pairs
        silent = unit.observer_only
        columns = {"unit_form": ONLY_OBSERVED} if silent else fast_columns(row, args, self.lists)
        if unit.fast is not None and unit.fast.called:
            self.called.append((len(self.code), unit.fast))
        self._put(instr, UNIT, handler, unit.prepare(args), **columns)

    def _resolve(self, operand, kind: str):
        return self.slots.resolve(operand, kind, self.labels, self.row_of)

    def _scalar(self, row: Row, block) -> None:
        op = row.op
        assert op is not None
        d, d2 = self._destinations(row)
        reads = [i for o in row.reads for i in (o.items if isinstance(o, Vec) else (o,))]
        sources = [self._source(o, t, row.given) for o, t in zip(reads, op.src, strict=False)]
        if getattr(op, "carry", "") in ("in", "both"):
            sources.append(CARRY)
        if getattr(op, "carry", "") in ("out", "both"):
            d2 = CARRY
        columns = {f"src{i}": slot for i, slot in enumerate(sources)} | {"dst0": d, "dst1": d2}
        if op.key in self.hot:
            self._put(row.instr, self.hot[op.key], **columns)
        else:
            number = self.cold.setdefault(op.key, len(self.cold))
            if number == len(self.cold_ops):
                self.cold_ops.append(op)
            self._put(row.instr, COLD, imm=number, **columns)
        if self._needs_widening(row):
            self._widen(row)

    def _unpack(self, row: Row, block) -> None:
        for op, target in zip(address.unpack(row.given), row.writes[0].items, strict=True):
            self._scalar(Row(row.instr, COLD, op=op, writes=[target], reads=row.reads), block)

    def _needs_widening(self, row: Row) -> bool:
        assert row.op is not None
        target, kind = row.writes[0], row.op.dst[0]
        narrow = kind in ("s8", "s16", "s32") and isinstance(target, Reg)
        return narrow and self.slots.width(target) > type_bits(kind)

    def _widen(self, row: Row) -> None:
        """Sign-extends a signed result that is narrower than its destination register (PTX ISA 6.4.1)."""
        assert row.op is not None
        target, mods = row.writes[0], (f"s{self.slots.width(row.writes[0])}", row.op.dst[0])
        extend = replace(row.given, op="cvt", mods=mods, operands=(target, target))
        self._scalar(make_row(extend), None)

    def _destinations(self, row: Row) -> tuple[int, int]:
        first = row.writes[0]
        targets = (first.first, first.second) if isinstance(first, Pair) else row.writes
        assert row.op is not None
        for target, kind in zip(targets, row.op.dst, strict=False):
            self._require_width(target, kind, row.given)
        second = self.slots.destination(targets[1]) if len(targets) > 1 else 0
        return self.slots.destination(targets[0]), second

    def _source(self, operand, kind: str, instr: Instr) -> int:
        self._require_width(operand, kind, instr)
        if kind == "pred":
            return self.slots.predicate(operand)
        return self.slots.value(operand, kind, instr)

    def _require_width(self, operand, kind: str, instr: Instr) -> None:
        """Raises PtxError unless a register is as wide as its operand's type (PTX ISA 9.4), except in cvt."""
        declared = self.function.regs.get(operand.name) if isinstance(operand, Reg) else None
        if declared is None or declared == kind or instr.op == "cvt":
            return
        if type_bits(declared) != type_bits(kind):
            what = "a predicate" if kind == "pred" else f"a register of {type_bits(kind)} bits"
            raise PtxError(f"{instr.name} takes {what}, not {operand.name}", instr.line, instr.text)

    def _access(self, row: Row, block) -> None:
        """A load or a store."""
        width, signed, space, vector = access_form(row.given)
        load = row.kind == LD
        value = row.writes[0] if load else row.given.operands[1]
        start = self._list(value, vector, row.given, destination=load)
        extend = self._sign_target(value) if load and signed else 0
        base, offset, space = self._address(row.given, row.given.operands[1 if load else 0], space)
        columns = {"list": start, "address": base, "elements": vector, "width": width, "extend": extend}
        columns |= {"space": space, "whole": int((vector, width) in WHOLE_WARP and not extend)}
        self._put(row.given, row.kind, imm=offset, **{f"access_{name}": n for name, n in columns.items()})

    def _sign_target(self, operand) -> int:
        first = operand.items[0] if isinstance(operand, Vec) else operand
        return self.slots.width(first) if isinstance(first, Reg) else 0

    def _list(self, operand, count: int, instr: Instr, destination: bool) -> int:
        items = operand.items if isinstance(operand, Vec) else (operand,)
        if len(items) != count:
            raise PtxError(f"expected {count} registers, found {len(items)}", instr.line, instr.text)
        start = len(self.lists)
        kind, slots = _value_type(instr), self.slots
        self.lists += [slots.destination(i) if destination else slots.value(i, kind, instr) for i in items]
        return start

    def _address(self, instr: Instr, operand, space: int) -> tuple[int, int, int]:
        if not isinstance(operand, Mem):
            raise PtxError("expected an address in brackets", instr.line, instr.text)
        base, offset = self.slots.address(operand)
        if "param" not in "".join(instr.mods):
            return base, offset, space
        if isinstance(operand.base, Sym):
            return base, offset, self.slots.param_space(operand.base.name)
        return base, offset + PARAM_WINDOW, space


def _value_type(instr: Instr) -> str:
    """The type of immediates in an instruction: its last type modifier, else b64."""
    kinds = [m for m in instr.mods if m in TYPE_BITS and m != "pred"]  # immediates are never predicates
    return kinds[-1] if kinds else "b64"
