"""Finds mbarrier waits that a program repeats in a loop until they succeed."""

from __future__ import annotations

from ptxsim.lowering.cfg import next_rows

ASKS = {"try_wait", "test_wait"}  # an mbarrier
PURE = {"selp", "mov", "setp", "cvt", "and", "or", "xor", "not", "add", "sub", "shl", "shr", "mul", "mad"}
_IDLE = PURE | {"bra", "nanosleep"}


def asked_again(program) -> frozenset[int]:
    """Rows of mbarrier waits that a polling loop repeats with no other work in between."""
    return frozenset(row for row in questions(program) if _comes_back(program, row))


def questions(program, forms=ASKS) -> list[int]:
    """Rows of mbarrier waits of these forms."""
    return [row for row, i in program.by_row.items() if i.op == "mbarrier" and i.mods[0] in forms]


def _comes_back(program, row: int) -> bool:
    """Whether control can return to a row through only arithmetic, branches and other mbarrier waits."""
    seen, todo = set(), next_rows(program, row)
    while todo:
        at = todo.pop()
        if at == row:
            return True
        instr = program.instrs[at]
        idle = instr is None or instr.op in _IDLE or instr.op == "mbarrier" and instr.mods[0] in ASKS
        if at not in seen and idle:
            seen.add(at)
            todo += next_rows(program, at)
    return False
