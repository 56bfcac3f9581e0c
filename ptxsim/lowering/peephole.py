"""Pairs of instructions that the main loop does at once without observers, past registers that no other
instruction reads (loop_memory.py).
"""

from __future__ import annotations

from ptxsim.frontend.parser import Imm, Reg, Vec
from ptxsim.isa.address_map import SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED
from ptxsim.isa.memory_access import access_form
from ptxsim.jit.bytecode import COLD, LD, MOVE_BYTES, ST
from ptxsim.lowering import cfg
from ptxsim.lowering.instruction_selection import Row

FARTHEST = 1 << 48  # bytes: an offset that is still sure to fit a column of the bytecode


def fuse_load_store(rows: list[Row], blocks: list[cfg.Block], last_use: dict[str, int]) -> None:
    """Marks loads whose registers only the next instruction reads, to store them in another space."""
    for block in blocks:
        for position in range(block.start, block.end - 1):
            load, store = rows[position], rows[position + 1]
            if load.kind == LD and store.kind == ST and _same_bytes(load, store):
                load.fused_store = all(last_use.get(r.name) == position + 1 for r in _items(load.writes[0]))


def _items(operand) -> tuple:
    return operand.items if isinstance(operand, Vec) else (operand,)


def _same_bytes(load: Row, store: Row) -> bool:
    """Whether a store writes just what a load read, in another space."""
    target, (place, value) = load.instr.operands[0], store.instr.operands
    forms = [access_form(row.instr) for row in (load, store)]
    (width, signed, space, count), (store_width, _, store_space, store_count) = forms
    return (
        value == target
        and (width, count) == (store_width, store_count)
        and width * count == MOVE_BYTES
        and {space, store_space} == {SPACE_GLOBAL, SPACE_SHARED}
        and not signed
        and load.instr.pred is None
        and store.instr.pred is None
        and all(isinstance(r, Reg) for r in _items(load.writes[0]))
        and place.base not in _items(load.writes[0])
    )


def fold_address_add(rows: list[Row], blocks: list[cfg.Block], last_use: dict[str, int]) -> None:
    """Marks additions of a constant whose sum only the next instruction reads, as the address it accesses."""
    for block in blocks:
        for position in range(block.start, block.end - 1):
            addition, access = rows[position], rows[position + 1]
            if _adds_constant(addition) and access.kind in (LD, ST) and access.instr.pred is None:
                _fold(addition, access, last_use.get(addition.writes[0].name) == position + 1)


def _adds_constant(row: Row) -> bool:
    instr = row.instr
    return (
        row.kind == COLD
        and instr.op == "add"
        and instr.mods in _FOLDED
        and instr.pred is None
        and isinstance(instr.operands[0], Reg)
        and isinstance(instr.operands[1], Reg)
        and isinstance(instr.operands[2], Imm)
    )


def _fold(addition: Row, access: Row, dies: bool) -> None:
    total, _, constant = addition.instr.operands
    place = access.instr.operands[1 if access.kind == LD else 0]
    values = _items(access.writes[0]) if access.kind == LD else _items(access.instr.operands[1])
    space, bits = access_form(access.instr)[2], _FOLDED[addition.instr.mods]
    fits = space == SPACE_SHARED if bits == 32 else space in (SPACE_GLOBAL, SPACE_GENERIC, SPACE_SHARED)
    value = constant.bits & (1 << bits) - 1
    value -= value >> bits - 1 << bits
    if dies and fits and place.base == total and total not in values and abs(value) < FARTHEST:
        addition.folded_constant = value


_FOLDED = {("s32",): 32, ("u32",): 32, ("s64",): 64, ("u64",): 64}
