"""Arrays of mbarriers among the shared variables of a kernel.

CUDA's compiler declares `__shared__ uint64_t full[4]` as `.b8 full[32]`. What the text does with the variable
says that it is an array: mbarrier instructions alone use it, at a computed index or at each element from one
line of the source. A structure of several arrays is none: each of its lines uses some elements only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from weakref import WeakKeyDictionary

from ptxsim.checks.phrases import spot
from ptxsim.checks.static_flow import Values
from ptxsim.events.views import Launch
from ptxsim.frontend.ast import Instr, Mem, Var
from ptxsim.lowering.emit import Program
from ptxsim.units.registry import signalled

BARRIER = 8  # bytes
MOST = 64  # barriers; what is larger holds data
_KNOWN: WeakKeyDictionary = WeakKeyDictionary()  # program -> its arrays, which are the same in every launch


def barrier_arrays(launch: Launch) -> frozenset[str]:
    """PTX names of the static shared variables that are arrays of barriers, by the program's text."""
    program = launch.program
    if program not in _KNOWN:
        small = [v for v in launch.shared_variables() if _may_be(v)]
        sized = [(v.name, launch.shared_offsets[v.name], v.size) for v in small]
        _KNOWN[program] = _arrays(program, sized) if sized else frozenset()
    return _KNOWN[program]


def _may_be(variable: Var) -> bool:
    plain = variable.type == "b8" and not variable.extern and variable.align >= BARRIER
    return plain and variable.size % BARRIER == 0 and BARRIER < variable.size <= MOST * BARRIER


def _arrays(program: Program, variables: list[tuple[str, int, int]]) -> frozenset[str]:
    offsets = {name: at for name, at, _ in variables}
    first, moved = Values(program, offsets), Values(program, offsets, unknown=BARRIER)
    lines: dict[str, dict[Hashable, set[int]]] = {}  # variable -> source line -> offsets of barriers in it
    indexed, others = set(), set()
    for row, operand, is_barrier in _accesses(program):
        bases = first.of(operand.base)
        places = [base + operand.offset for base in bases]
        for name, at, size in variables:
            used = {place - at for place in places if at <= place < at + size}
            if not used:
                continue
            if not is_barrier:
                others.add(name)
            lines.setdefault(name, {}).setdefault(spot(program, row), set()).update(used)
            if moved.of(operand.base) != bases:
                indexed.add(name)
    alone = {name for name in lines if name not in others}
    return frozenset(name for name in alone if _is_one([*lines[name].values()], name in indexed))


def _accesses(program: Program) -> Iterator[tuple[int, Mem, bool]]:
    """(row, operand in memory, whether it is an mbarrier)."""
    for row, instr in program.by_row.items():
        yield from ((row, o, _is_barrier(instr, o)) for o in instr.operands if isinstance(o, Mem))


def _is_barrier(instr: Instr, operand: Mem) -> bool:
    return instr.op == "mbarrier" or operand is signalled(instr)


def _is_one(lines: list[set[int]], indexed: bool) -> bool:
    """Whether the lines that use a variable take it for one array: those that share an element belong
    together. With a computed index, a line has the first element of its array.
    """
    joined, rest = set(lines[0]), lines[1:]
    while near := [one for one in rest if one & joined]:
        joined = joined.union(*near)
        rest = [one for one in rest if one not in near]
    return not rest and (indexed or len(joined) > 1)
