"""What a program does with the answer of an instruction that asks: asks again, or does not look at it."""

from __future__ import annotations

from collections import defaultdict

from ptxsim.frontend.ast import Reg, registers_of
from ptxsim.lowering.cfg import jumps_of

_ASKS = {"try_wait", "test_wait"}  # an mbarrier
_PURE = {"selp", "mov", "setp", "cvt", "and", "or", "xor", "not", "add", "sub", "shl", "shr", "mul", "mad"}
_IDLE = _PURE | {"bra", "nanosleep"}


def asked_again(program) -> frozenset[int]:
    """Rows of waits at an mbarrier to which control comes back with nothing else in between."""
    return frozenset(row for row in _questions(program) if _comes_back(program, row))


def _questions(program, forms=_ASKS) -> list[int]:
    asks = (i is not None and i.op == "mbarrier" and i.mods[0] in forms for i in program.instrs)
    return [row for row, one in enumerate(asks) if one]


def _comes_back(program, row: int) -> bool:
    """Whether control can come back to a row by arithmetic, branches and other questions alone."""
    seen, todo = set(), _next(program, row)
    while todo:
        at = todo.pop()
        if at == row:
            return True
        instr = program.instrs[at]
        idle = instr is None or instr.op in _IDLE or instr.op == "mbarrier" and instr.mods[0] in _ASKS
        if at not in seen and idle:
            seen.add(at)
            todo += _next(program, at)
    return False


def ignored_questions(program) -> frozenset[int]:
    """Rows of try_wait whose answer decides nothing: no branch, no guard, nothing kept."""
    rows = _questions(program, {"try_wait"})
    if not rows:
        return frozenset()
    readers, guarded = _readers(program)
    return frozenset(row for row in rows if _ignored(program.instrs[row], readers, guarded))


def _ignored(instr, readers: dict[str, list], guarded: set[str]) -> bool:
    """Whether no register that depends on the answer guards anything, or goes into more than arithmetic."""
    seen, todo = set(), [*registers_of(instr.operands[:1])]
    while todo:
        name = todo.pop()
        if name in guarded:
            return False
        for reader in readers[name] if name not in seen else ():
            if reader.op not in _PURE or not isinstance(reader.operands[0], Reg):
                return False
            todo.append(reader.operands[0].name)
        seen.add(name)
    return True


def _readers(program) -> tuple[dict[str, list], set[str]]:
    """Register -> the instructions that read it; and the registers that guard one."""
    readers: dict[str, list] = defaultdict(list)
    guarded = set()
    for instr in program.instrs:
        if instr is None:
            continue
        if instr.pred is not None:
            guarded.add(instr.pred.reg.name)
        pure = instr.op in _PURE or instr.op == "mbarrier" and instr.mods[0] in _ASKS
        for name in registers_of(instr.operands[1:] if pure else instr.operands):
            readers[name].append(instr)
    return readers, guarded


def _next(program, row: int) -> list[int]:
    jumps, falls = jumps_of(program).get(row, ([], True))
    return jumps + ([row + 1] if falls and row + 1 < len(program.code) else [])
