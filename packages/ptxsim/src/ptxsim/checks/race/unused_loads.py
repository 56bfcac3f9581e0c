"""Loads whose value is used nowhere on the way that the thread took: a pipeline's last look ahead.

If two threads of a CTA race, the same barrier of the whole CTA comes next for both, or their end; else that
barrier would order them. A load changes nothing if no way on which that barrier comes next uses its value.
Ways that cannot be are left out: in `if (n) start(); while (n) ..` no loop lacks a start.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from ptxsim.checks.cta_barriers import cta_barriers
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.register_uses import never_read
from ptxsim.checks.static_flow import definitions, reads, targets
from ptxsim.frontend.ast import Imm, Instr, Reg
from ptxsim.isa.memory_access import ASKS
from ptxsim.lowering.cfg import next_rows
from ptxsim.lowering.emit import Program

_END = -1
_MOST = 20_000  # steps on ways that are looked at
Zero = frozenset[tuple[str, bool]]  # (register, whether it is 0), of those that the program compares with 0


def unused(races, pair: AccessPair) -> bool:
    """Whether the value of every load of the pair is used nowhere, wherever the two met."""
    met, program = pair.each_time.met, races.launch.program
    apart = any(barrier.mixed for barrier in cta_barriers(races.cluster).values())
    if not met or apart or min(met)[0] < 0:
        return False
    barriers = ((load, _next_barriers(program, load) & _next_barriers(program, write)) for load, write in met)
    return all(_unused(program, load, common) for load, common in barriers)


@functools.lru_cache(maxsize=512)
def _unused(program: Program, load: int, meet: frozenset[int]) -> bool:
    instr = program.instrs[load]
    if instr is None or instr.op not in ("ld", "ldmatrix") or {*ASKS, "volatile"} & set(instr.mods):
        return False
    if not meet or never_read(program, load):
        return False
    return not any(_used(program, load, name, meet) for name in targets(instr))


def _used(program: Program, load: int, name: str, meet: frozenset[int]) -> bool:
    """Whether a way through one of these barriers, or to the end, uses what the load left in a register."""
    todo = [(row, name, False, zero) for row, zero in _following(program, load, frozenset())]
    seen: set[tuple] = set()
    while todo and len(seen) < _MOST:
        state = row, name, behind, zero = todo.pop()
        instr = program.instrs[row]
        if state in seen or (_whole_cta(instr) and not behind and row not in meet):
            continue
        seen.add(state)
        behind |= _whole_cta(instr)
        after = list(_following(program, row, zero))
        guard = instr.pred if instr is not None else None
        if instr is not None and (name in reads(instr) or (guard and name == guard.reg.name)):
            if instr.op == "mov":
                todo += [(one, to, behind, then) for one, then in after for to in targets(instr)]
            elif behind or meet & _next_barriers(program, row):
                return True
        if instr is None or guard or name not in targets(instr):
            todo += [(one, name, behind, then) for one, then in after]
    return bool(todo)


@functools.lru_cache(maxsize=4096)
def _next_barriers(program: Program, row: int) -> frozenset[int]:
    """Rows of barriers of the whole CTA that may come next after a row; _END: none may."""
    found, seen, todo = set(), {row}, [row]
    while todo:
        at = todo.pop()
        after, instr = next_rows(program, at), program.instrs[at]
        if not after or (instr is not None and instr.op in ("exit", "ret")):
            found.add(_END)
        found.update(one for one in after if _whole_cta(program.instrs[one]))
        after = [one for one in after if one not in seen and one not in found]
        seen.update(after)
        todo += after
    return frozenset(found)


def _whole_cta(instr: Instr | None) -> bool:
    """Whether all threads of the CTA wait here for each other."""
    if instr is None or instr.op not in ("bar", "barrier") or instr.pred is not None:
        return False
    return "sync" in instr.mods and not {"warp", "cluster"} & set(instr.mods) and len(instr.operands) == 1


def _following(program: Program, row: int, zero: Zero) -> Iterator[tuple[int, Zero]]:
    """What may follow a row on a way, and what is known there."""
    instr = program.instrs[row]
    if instr is None or instr.op != "bra" or instr.pred is None:
        zero = zero if instr is None else _behind(program, instr, zero)
        yield from ((one, zero) for one in next_rows(program, row))
        return
    name, equal = _tested(program).get(instr.pred.reg.name, ("", False))
    for taken in (True, False):
        is_zero = equal == (taken != instr.pred.negated)
        if (name, not is_zero) not in zero:
            more = {(name, is_zero)} if name else set()
            yield from ((one, zero | more) for one in next_rows(program, row, lambda _, to=taken: to))


def _behind(program: Program, instr: Instr, zero: Zero) -> Zero:
    written = set(targets(instr))
    kept = frozenset(fact for fact in zero if fact[0] not in written)
    names = written & {name for name, _ in _tested(program).values()}
    if instr.op != "mov" or instr.pred is not None or len(names) != 1:
        return kept
    source, (name,) = instr.operands[1], names
    if isinstance(source, Imm) and source.kind == "int":
        return kept | {(name, source.bits == 0)}
    return kept | {(name, is_zero) for of, is_zero in zero if source == Reg(of)}


@functools.lru_cache(maxsize=16)
def _tested(program: Program) -> dict[str, tuple[str, bool]]:
    """Predicate that only one comparison with 0 sets, next to its branch -> (register, whether "equal")."""
    found = {}
    for row, instr in program.by_row.items():
        if instr.op != "setp" or instr.mods[:1] not in (("eq",), ("ne",)):
            continue
        number, after = instr.operands[-1], next_rows(program, row)
        near = all(_branches(program.instrs[one], instr.operands[0]) for one in after)
        if near and len(instr.mods) == 2 and number == Imm(0, "int") and isinstance(instr.operands[1], Reg):
            name = instr.operands[0].name
            if len(definitions(program)[name]) == 1:
                found[name] = instr.operands[1].name, instr.mods[0] == "eq"
    return found


def _branches(instr: Instr | None, predicate) -> bool:
    return instr is not None and instr.op == "bra" and instr.pred is not None and instr.pred.reg == predicate
