"""Stores over what another lane of the warp has read, of values that were computed from what it read.

    ld.shared x, [p];  shfl.sync y, x, ..;  @first st.shared [p], f(y);

No barrier orders the store after the loads of the other lanes, and none is needed: the value stored comes, by
way of the exchange, from theirs, and no value comes from itself (PTX ISA 8.10.4). The text of a program is
followed backwards from the store, whatever the order of its rows, so that a register that is used twice may
be taken for another: what is found is told, and no error.
"""

from __future__ import annotations

import functools
from collections import defaultdict

from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.shadow_order import READ_WRITE
from ptxsim.checks.static_flow import reads, targets
from ptxsim.frontend.ast import registers_of

EXCHANGES = ("shfl", "redux", "vote", "match")


def carried(races, pair: AccessPair) -> bool:
    """Whether the store of a pair of lanes of one warp depends on the load, through an exchange."""
    sides = (pair.first, pair.second)
    if pair.code != READ_WRITE or any(access.kind != "thread" for access in sides):
        return False
    warps = {access.warp(races) for access in sides}
    return len(warps) == 1 and comes_from(races.launch.program, pair.second.row, pair.first.row)


@functools.lru_cache(maxsize=512)
def comes_from(program, store: int, load: int) -> bool:
    """Whether the text lets what row `store` stores depend on row `load` by an exchange between lanes."""
    instr = program.instrs[store]
    if instr is None or instr.op != "st":
        return False
    values = frozenset(registers_of(instr.operands[1:]))
    sources = {
        name for row in _before(program, values) if _exchanges(program, row) for name in _read(program, row)
    }
    return load in _before(program, frozenset(sources))


def _exchanges(program, row: int) -> bool:
    return program.instrs[row].op in EXCHANGES


def _read(program, row: int) -> frozenset:
    return reads(program.instrs[row])


def _before(program, names: frozenset) -> set[int]:
    """Rows that what is in these registers may come from."""
    defined, rows, todo = definitions(program), set(), [*names]
    seen = set(todo)
    while todo:
        for row in defined[todo.pop()]:
            rows.add(row)
            fresh = _read(program, row) - seen
            seen |= fresh
            todo += fresh
    return rows


@functools.lru_cache(maxsize=8)
def definitions(program) -> dict[str, list[int]]:
    """Register -> rows that write it."""
    found = defaultdict(list)
    for row, instr in enumerate(program.instrs):
        for name in targets(instr) if instr is not None else ():
            found[name].append(row)
    return found
