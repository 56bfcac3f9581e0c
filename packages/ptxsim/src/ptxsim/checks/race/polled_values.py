"""Which values of a word end a loop that polls it, if the loop does nothing else with the value.

    LOOP: ld.acquire.gpu.u32 %r1, [flag];  setp.lt.u32 %p1, %r1, %r2;  @%p1 bra LOOP;

A poll that finds a later value could as well have found the first one that ends its loop.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from ptxsim.checks.static_flow import definitions, reads
from ptxsim.events.views import Cluster
from ptxsim.frontend.ast import Imm, Instr, Reg
from ptxsim.isa.memory_access import ordering
from ptxsim.isa.operands import type_bits
from ptxsim.lowering.cfg import jumps_of, next_rows
from ptxsim.lowering.emit import Program

_COMPARES: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
_STEPS = 8  # rows from a poll to its branch, or back


class Poll(NamedTuple):
    compare: str
    type: str
    operands: tuple[Any, ...]  # two of them
    read: str  # the register that holds what was read
    ends: bool  # whether the loop ends where the comparison holds
    bits: int  # of the word

    def ended_by(self, cluster: Cluster, warp: int, lane: int) -> Callable[[int], bool]:
        """Which values end the loop of this thread, as its registers are now."""

        def ends(value: int) -> bool:
            sides = [
                value if o == Reg(self.read) else self._held(o, cluster, warp, lane) for o in self.operands
            ]
            one, other = (_number(side, self.type) for side in sides)
            return _COMPARES[self.compare](one, other) == self.ends

        return ends

    def _held(self, operand, cluster: Cluster, warp: int, lane: int) -> int:
        if isinstance(operand, Imm):
            return operand.bits
        return int(cluster.registers[warp, cluster.program.slots.registers[operand.name], lane])


def _number(bits: int, of: str) -> int:
    width = type_bits(of)
    bits &= (1 << width) - 1
    return bits - (bits >> width - 1 << width) if of.startswith("s") else bits


@functools.lru_cache(maxsize=16)
def polls(program: Program) -> dict[int, Poll]:
    """Rows of strong loads that poll."""
    rows = [row for row, i in program.by_row.items() if i.op == "ld" and ordering(i).strong]
    found = {row: _poll_at(program, row) for row in rows}
    return {row: poll for row, poll in found.items() if poll is not None}


def _poll_at(program: Program, row: int) -> Poll | None:
    load, at = program.by_row[row], row
    value = load.operands[0]
    if not isinstance(value, Reg) or definitions(program)[value.name] != [row]:
        return None
    users = [r for r, i in program.by_row.items() if value.name in reads(i)]
    test = program.by_row[users[0]] if len(users) == 1 else None
    if test is None or test.op != "setp" or len(test.operands) != 3 or not _comparable(program, test, value):
        return None
    for _ in range(_STEPS):
        if at in jumps_of(program):
            return _of_branch(program, row, at, test, value, load)
        if not (after := next_rows(program, at)):
            return None
        at = after[0]
    return None


def _of_branch(program: Program, row: int, at: int, test: Instr, value: Reg, load: Instr) -> Poll | None:
    branch, into = program.instrs[at], test.operands[0]
    if branch is None or branch.pred is None or not isinstance(into, Reg) or branch.pred.reg != into:
        return None
    taken, other = jumps_of(program)[at][0][0], at + 1
    again = [_comes_back(program, row, start) for start in (taken, other)]
    if again[0] == again[1]:
        return None
    ends = again[1] != branch.pred.negated  # the branch that is taken where the predicate holds leaves
    name, of = test.mods[0], test.mods[-1]
    return Poll(name, of, tuple(test.operands[1:]), value.name, ends, type_bits(load.mods[-1]))


def _comes_back(program: Program, row: int, at: int) -> bool:
    for _ in range(_STEPS):
        if at == row:
            return True
        after = next_rows(program, at)
        if len(after) != 1:
            return False
        at = after[0]
    return False


def _comparable(program: Program, test: Instr, value: Reg) -> bool:
    """Whether it compares integers, and one side is the value as it was read."""
    of, sides = test.mods[-1], test.operands[1:]
    others = [side for side in sides if isinstance(side, Reg) and side != value]
    if not all(_has_own_slot(program, side.name) for side in others):
        return False  # the loop's end may be what another variable holds by now
    integers = of[0] in "bsu" and of[1:] in ("32", "64") and test.mods[0] in _COMPARES and len(test.mods) == 2
    return (
        integers
        and sum(side == value for side in sides) == 1
        and all(isinstance(s, Reg | Imm) for s in sides)
    )


def _has_own_slot(program: Program, name: str) -> bool:
    slots = program.slots.registers
    return name in slots and list(slots.values()).count(slots[name]) == 1
