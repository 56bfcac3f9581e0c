"""Operands -> slots of the register file: registers (sharing slots), constants, special registers, symbols.

Slot order: first the registers, then the constants and special registers (filled in once per warp).
Predicates are in a separate file, one 32-bit mask each; predicate 0 is always true. A predicate operand is
encoded as 2 * index + negated.
"""

from __future__ import annotations

import functools

import numpy as np

from ptxsim.frontend.ast import (
    Function,
    Imm,
    Instr,
    Label,
    Mem,
    Module,
    Pair,
    Paren,
    Pred,
    PtxError,
    Reg,
    Sink,
    Sym,
    Vec,
    registers_of,
)
from ptxsim.isa.address_map import PARAM_WINDOW
from ptxsim.isa.operands import SINK, MemArg, PredArg, constant_bits, type_bits
from ptxsim.isa.special_registers import RESERVED, known_special
from ptxsim.lowering import cfg
from ptxsim.machine.global_memory import RESERVED_SMEM


class RegisterAllocator:
    def __init__(self, function: Function, module: Module):
        self.function, self.module = function, module
        # ("const", bits) | ("special", name) | ("sym", name, offset) -> slot
        self.fixed: dict[tuple, int] = {}
        self.registers: dict[str, int] = {}
        self.predicates: dict[str, int] = {}  # special ones, too: %is_explicit_cluster
        self.register_slots = 2  # SINK and CARRY; final after allocate()
        self.unset: dict[int, int] = {}  # slot of a register that may be read before it is written -> bits
        self.local_offsets, self.local_bytes = _local_layout(function)
        self._inner = {v.name for v in (*function.vars, *function.params)}

    @property
    def count(self) -> int:
        """The total number of slots."""
        return self.register_slots + len(self.fixed)

    def allocate(self, blocks: list[cfg.Block], rows: list) -> None:
        """Gives every register a slot; registers whose live ranges do not overlap share one."""
        index: dict[str, int] = {}
        uses, kills, defs, kept = [], [], [], set()
        for row in rows:
            guard = row.instr.pred if row.instr is not None else None
            read = _registers(row.reads, self.function) | _bases(row.writes, self.function)
            written = _registers(row.writes, self.function)
            for name in sorted(read | written):
                index.setdefault(name, len(index))
            use, kill = _bits(read, index), _bits(written, index)
            keeps = row.unit is not None and row.unit.async_destination
            uses.append(use | (kill if guard is not None or keeps else 0))
            kills.append(kill if guard is None else 0)
            defs.append(kill)
            if keeps:
                kept |= written | {name for copies in row.copies.values() for name in copies}
        ranges, unset = cfg.live_ranges(blocks, uses, kills, defs)
        self._assign({name: ranges[i] for name, i in index.items() if i in ranges}, kept)
        types = self.function.regs
        self.unset = {
            self.registers[name]: type_bits(types.get(name, "b64"))
            for name, i in index.items()
            if unset >> i & 1 and name in self.registers
        }

    def _assign(self, ranges: dict[str, list[int]], kept: set[str]) -> None:
        free: list[int] = []
        ending: dict[int, list[int]] = {}
        last = -1
        for name in sorted(ranges, key=lambda n: (ranges[n][0], n)):
            start, end = ranges[name]
            for position in range(last + 1, start):
                free += ending.pop(position, [])
            last = max(last, start - 1)
            if name in kept or not free:
                slot = self.register_slots
                self.register_slots += 1
            else:
                slot = free.pop()
            self.registers[name] = slot
            if name not in kept:
                ending.setdefault(end, []).append(slot)

    def width(self, reg: Reg) -> int:
        return type_bits(self.function.regs.get(reg.name, "b64"))

    def destination(self, operand) -> int:
        if isinstance(operand, Sink):
            return SINK
        if not isinstance(operand, Reg):
            raise PtxError("destination is not a register", self.function.line, str(operand))
        if self.function.regs.get(operand.name) == "pred":
            return self._predicate_index(operand.name)
        if operand.name not in self.registers:
            raise PtxError(f"undeclared register {operand.name}", self.function.line, operand.name)
        return self.registers[operand.name]

    def _predicate_index(self, name: str) -> int:
        if name not in self.function.regs and not known_special(name):
            raise PtxError(f"register {name} is not modelled", self.function.line, name)
        return self.predicates.setdefault(name, len(self.predicates) + 1)

    def predicate(self, operand) -> int:
        """The code of a predicate operand: 2 * index + negated. Constants 0 and 1 are allowed."""
        if isinstance(operand, Imm):
            return 0 if operand.bits else 1
        negated = isinstance(operand, Pred) and operand.negated
        reg = operand.reg if isinstance(operand, Pred) else operand
        return 2 * self._predicate_index(reg.name) + int(negated)

    def value(self, operand, kind: str, instr: Instr | None = None) -> int:
        """The slot of a source operand of type `kind`."""
        if isinstance(operand, Imm):
            return self._fix(("const", constant_bits(operand, kind)))
        line, text = (instr.line, instr.text) if instr else (self.function.line, str(operand))
        if isinstance(operand, Sym):
            function = None if self.knows(operand.name) else self.module.address_of(operand.name)
            if function is not None:
                return self._fix(("const", function))
            if not self.knows(operand.name):
                raise PtxError(f"the address of {operand.name} is not modelled", line, text)
            window = PARAM_WINDOW if self.is_parameter(operand.name) else 0
            return self._fix(("sym", operand.name, operand.offset - window))
        if isinstance(operand, Reg):
            if operand.name in self.function.regs:
                return self.destination(operand)
            if operand.name in RESERVED:
                return self._fix(("sym", RESERVED_SMEM.name, RESERVED[operand.name]))
            if not known_special(operand.name):
                raise PtxError(f"register {operand.name} is not modelled", line, text)
            return self._fix(("special", operand.name))
        if isinstance(operand, Vec):
            return self._fix(("const", 0)) if not operand.items else self.value(operand.items[0], kind, instr)
        raise PtxError(f"operand {operand} is not modelled here", line, text)

    def _fix(self, key: tuple) -> int:
        return self.register_slots + self.fixed.setdefault(key, len(self.fixed))

    def address(self, mem: Mem) -> tuple[int, int]:
        """(slot, byte offset) of `[base + offset]`."""
        if mem.base is None:
            return self._fix(("const", mem.offset & (2**64 - 1))), 0
        if isinstance(mem.base, Sym):
            return self._fix(("sym", mem.base.name, mem.base.offset + mem.offset)), 0
        return self.value(mem.base, "b64"), mem.offset

    @functools.cached_property
    def constants(self) -> tuple[np.ndarray, np.ndarray, list[tuple[tuple, int]]]:
        """(slots of constants, their values (constants, 1), (key, slot) of the other fixed slots)."""
        fixed = [(key, self.register_slots + at) for key, at in self.fixed.items()]
        values = {slot: key[1] for key, slot in fixed if key[0] == "const"}
        others = [(key, slot) for key, slot in fixed if slot not in values]
        slots = np.array(list(values), np.int64)
        return slots, np.array(list(values.values()), np.uint64)[:, None], others

    @functools.cached_property
    def named(self) -> list[str]:
        """The variables that the kernel uses, in a fixed order."""
        return list(dict.fromkeys(key[1] for key in self.fixed if key[0] == "sym"))

    @functools.cached_property
    def meets_its_grid(self) -> bool:
        """Whether the kernel reads the address of the grid barrier, as cooperative_groups does."""
        return any(("special", name) in self.fixed for name in ("%envreg1", "%envreg2"))

    def is_parameter(self, name: str) -> bool:
        """Whether a name is a kernel parameter, whose address is in .param space, for ld.param (5.1.6.1)."""
        return name not in self.local_offsets and any(p.name == name for p in self.function.params)

    def param_space(self, name: str) -> int:
        """The space of ld.param / st.param: that of kernel parameters (global) or of a call frame (local)."""
        return 3 if name in self.local_offsets else 0

    def resolve(self, operand, kind: str, labels: dict, rows: dict):
        """An operand of a unit instruction, in the form that its handler expects. `_` is -1; in a vector of
        results, which a handler writes whole, it is a slot that nobody reads.
        """
        if isinstance(operand, Mem):
            slot, offset = self.address(operand)
            return MemArg(slot, offset, tuple(self.resolve(p, "b32", labels, rows) for p in operand.parts))
        if isinstance(operand, Vec | Paren):
            return tuple(
                SINK if isinstance(o, Sink) else self.resolve(o, kind, labels, rows) for o in operand.items
            )
        if isinstance(operand, Pair):
            return (
                self.resolve(operand.first, kind, labels, rows),
                self.resolve(operand.second, kind, labels, rows),
            )
        if isinstance(operand, Sink):
            return -1
        if isinstance(operand, Label):
            return rows[labels[operand.name]]
        if isinstance(operand, Pred) or (
            isinstance(operand, Reg) and self.function.regs.get(operand.name) == "pred"
        ):
            return PredArg(self.predicate(operand))
        if isinstance(operand, Sym) and not self.knows(operand.name):
            return operand
        return self.value(operand, kind)

    def knows(self, name: str) -> bool:
        """Whether a name is a variable or parameter, not a function or anything else."""
        return name in self._inner or name in self.module.vars


def _registers(operands: list, function: Function) -> set[str]:
    """The names of the data registers in operands, including those inside addresses."""
    return {name for name in registers_of(operands) if function.regs.get(name, "pred") != "pred"}


def _bases(writes: list, function: Function) -> set[str]:
    """The registers that destination operands read: those inside an address."""
    return _registers([o for o in writes if isinstance(o, Mem)], function)


def _bits(names: set[str], index: dict[str, int]) -> int:
    bits = 0
    for name in names:
        bits |= 1 << index[name]
    return bits


def _local_layout(function: Function) -> tuple[dict[str, int], int]:
    """(variable -> offset, bytes) of .local and call-frame .param variables in a thread's local memory."""
    offsets, end = {}, 0
    for var in function.vars:
        if var.space in ("local", "param"):
            align = max(var.align or 1, 1)
            end = -(-end // align) * align
            offsets[var.name] = end
            end += max(var.size, 1)
    return offsets, -(-end // 16) * 16
