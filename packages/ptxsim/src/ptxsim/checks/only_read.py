"""Module variables that a kernel only reads: lookup tables, strings to print."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection

from ptxsim.checks.static_flow import targets
from ptxsim.frontend.ast import Instr, Mem, Module, Paren, Sym, Vec, registers_of
from ptxsim.lowering.emit import Program

_PASS = frozenset(
    ("mov", "cvta", "cvt", "add", "sub", "mad", "mul", "and", "or", "xor", "not")
    + ("shl", "shr", "shf", "selp", "min", "max", "lop3", "prmt")
)
_ASK = frozenset(("ld", "ldu", "setp", "set", "isspacep", "prefetch", "bra"))
_PRINT = {"vprintf", "__assertfail"}


def only_read(module: Module, program: Program, names: Collection[str]) -> set[str]:
    """Those of the variables that no thread can change; none if the initial value of any of them holds
    addresses.
    """
    if not names or any(module.vars[name].relocs for name in names):  # most kernels have no variables
        return set()
    return set(names) - handed_on(program, frozenset(names))


@functools.lru_cache(maxsize=64)
def handed_on(program: Program, names: frozenset[str]) -> set[str]:
    """Variables whose addresses the program uses for anything other than loads, or may pass on."""
    left = [(instr, _held(instr)) for instr in program.by_row.values() if not _asks(instr)]
    holds: defaultdict[str, set[str]] = defaultdict(set)  # register or call parameter -> variables
    holds.update({name: {name} for name in names})
    given: set[str] = set()
    before = -1
    while before != sum(map(len, holds.values())):
        before = sum(map(len, holds.values()))
        for instr, held in left:
            found = set().union(*(holds[name] for name in held if name in holds))
            if not found:
                continue
            to = _keeps(instr)
            if to is None:
                given |= found
            for name in to or ():
                holds[name] |= found
    return given


def _asks(instr: Instr) -> bool:
    """Whether an instruction may use an address without passing it on. ld.param does not count: a call
    parameter may hold an address.
    """
    return instr.op in _ASK and "param" not in instr.mods


def _passes(instr: Instr) -> bool:
    return instr.op in _PASS or instr.op == "ld"


def _held(instr: Instr) -> list[str]:
    """Registers and symbols that an instruction reads; unless it is arithmetic or a load, everything it
    names.
    """
    operands = instr.operands[1:] if _passes(instr) else instr.operands
    return [*registers_of(operands), *_symbols(operands)]


def _symbols(operands) -> list[str]:
    found = []
    for operand in operands:
        inner = operand.base if isinstance(operand, Mem) else operand
        if isinstance(inner, Sym):
            found.append(inner.name)
        elif isinstance(inner, Vec | Paren):
            found += _symbols(inner.items)
    return found


def _keeps(instr: Instr) -> list[str] | None:
    """Registers or parameters that hold the addresses read by an instruction afterwards; None: unknown."""
    if _passes(instr):
        return targets(instr)
    if instr.op == "call" and _PRINT & set(_symbols(instr.operands)):
        return []
    frame = instr.operands[0] if instr.op == "st" and "param" in instr.mods else None
    if isinstance(frame, Mem) and isinstance(frame.base, Sym):
        return [frame.base.name]
    return None
