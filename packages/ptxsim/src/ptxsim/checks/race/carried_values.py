"""Stores that overwrite what another lane of the warp has read, with values computed from what it read.

    ld.shared x, [p];  shfl.sync y, x, ..;  @first st.shared [p], f(y);

No barrier orders the store after the loads of the other lanes, and none is needed: through the exchange, the
stored value depends on theirs, and no value depends on itself (PTX ISA 8.10.4). The program text is traced
backwards from the store, whatever the order of its rows, so two uses of one register may be confused: such a
pair is therefore still reported, but not as an error.
"""

from __future__ import annotations

import functools

import numpy as np

from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.shadow_order import READ_WRITE
from ptxsim.checks.static_flow import definitions, reads
from ptxsim.frontend.ast import registers_of
from ptxsim.jit.bytecode import BRA, IMM, OP
from ptxsim.lowering.emit import Program

EXCHANGES = ("shfl", "redux", "vote", "match")


def carried(races, pair: AccessPair) -> bool:
    """Whether both accesses are by lanes of one warp and the store depends on the load through an
    exchange.
    """
    sides = (pair.first, pair.second)
    if pair.code != READ_WRITE or any(access.kind != "thread" for access in sides):
        return False
    warps = {access.warp(races) for access in sides}
    return len(warps) == 1 and comes_from(races.launch.program, pair.second.row, pair.first.row)


@functools.lru_cache(maxsize=512)
def comes_from(program: Program, store: int, load: int) -> bool:
    """Whether, by the text, the value stored at row `store` may depend on row `load` through an exchange
    between lanes.
    """
    instr = program.instrs[store]
    if instr is None or instr.op != "st":
        return False
    values = frozenset(registers_of(instr.operands[1:]))
    sources = {
        name for row in _before(program, values) if _exchanges(program, row) for name in _read(program, row)
    }
    return load in _before(program, frozenset(sources))


@functools.lru_cache(maxsize=512)
def changed(program: Program, store: int) -> frozenset[int]:
    """Rows of loads from the very place that row `store` overwrites, whose values the stored one depends on,
    by the text.
    """
    instr = program.instrs[store]
    if instr is None or instr.op != "st":
        return frozenset()
    before = _before(program, frozenset(registers_of(instr.operands[1:])))
    loads = ((row, program.by_row[row]) for row in before)
    return frozenset(row for row, load in loads if load.op == "ld" and load.operands[1] == instr.operands[0])


@functools.lru_cache(maxsize=64)
def placing_loads(program: Program, store: int) -> frozenset[int]:
    """Rows of loads that decide, by the text, where row `store` stores, or whether it does."""
    code, instr = program.code, program.by_row[store]
    skips = (code[:, OP] == BRA) & (np.arange(len(code)) < store) & (code[:, IMM] > store)
    guards = [instr, *(program.instrs[row] for row in np.flatnonzero(skips).tolist())]
    names = {i.pred.reg.name for i in guards if i is not None and i.pred is not None}
    before = _before(program, frozenset(names | set(registers_of(instr.operands[:1]))))
    instrs = ((row, program.by_row[row]) for row in before)
    loads = ((row, i.mods) for row, i in instrs if i.op in ("ld", "atom"))
    return frozenset(row for row, mods in loads if not any(mod.startswith("param") for mod in mods))


def _exchanges(program: Program, row: int) -> bool:
    return program.by_row[row].op in EXCHANGES


def _read(program: Program, row: int) -> frozenset:
    return reads(program.by_row[row])


def _before(program: Program, names: frozenset) -> set[int]:
    """Rows that may have computed the contents of these registers."""
    defined, rows, todo = definitions(program), set(), [*names]
    seen = set(todo)
    while todo:
        for row in defined[todo.pop()]:
            rows.add(row)
            fresh = _read(program, row) - seen
            seen |= fresh
            todo += fresh
    return rows
