"""Waits at an mbarrier that a program asks again until they pass."""

from __future__ import annotations

from ptxsim.lowering.cfg import next_rows

ASKS = {"try_wait", "test_wait"}  # an mbarrier
PURE = {"selp", "mov", "setp", "cvt", "and", "or", "xor", "not", "add", "sub", "shl", "shr", "mul", "mad"}
_IDLE = PURE | {"bra", "nanosleep"}


def asked_again(program) -> frozenset[int]:
    """Rows of waits at an mbarrier to which control comes back with nothing else in between."""
    return frozenset(row for row in questions(program) if _comes_back(program, row))


def questions(program, forms=ASKS) -> list[int]:
    """Rows of waits at an mbarrier, of these forms."""
    asks = (i is not None and i.op == "mbarrier" and i.mods[0] in forms for i in program.instrs)
    return [row for row, one in enumerate(asks) if one]


def _comes_back(program, row: int) -> bool:
    """Whether control can come back to a row by arithmetic, branches and other questions alone."""
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
