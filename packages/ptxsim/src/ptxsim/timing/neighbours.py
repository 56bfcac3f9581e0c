"""Which loads of shared memory an assembler can prove to be neighbours: addresses with equal variable parts.

An address is a sum of values times constants. Values that are not computed by sums (but by a bitwise
operation or a load) are opaque: two addresses differ by a constant only if they contain the same opaque parts
with the same factors. A loop variable that changes by the same amount in each iteration is no obstacle: its
difference between iterations of an unrolled loop is known.
"""

from __future__ import annotations

from ptxsim.frontend.ast import Mem, Reg
from ptxsim.timing.flow import Flow, flow
from ptxsim.timing.values import ValueNumbers

# (opaque parts: (value number, factor) ..; whether one of them changes within the innermost loop)
Part = tuple[tuple[tuple[int, int], ...], bool]


def variable_parts(program) -> dict[int, Part]:
    """Row of a load from shared memory -> the variable part of its address."""
    found = flow(program)
    values = ValueNumbers(program.instrs, found)
    return {
        row: _part(values, found, b, instr.operands[1].base.name, row)
        for b in found.order
        for row in found.blocks[b].positions
        if _loads(instr := program.instrs[row])
    }


def _loads(instr) -> bool:
    if instr is None or instr.op != "ld" or not any(m.startswith("shared") for m in instr.mods):
        return False
    return isinstance(instr.operands[1], Mem) and isinstance(instr.operands[1].base, Reg)


def _part(values: ValueNumbers, graph: Flow, block: int, name: str, row: int) -> Part:
    inner = graph.loops.get(graph.innermost(block), set())
    sums: dict[int, int] = {}
    for number in values.reads.get(row, ())[-1:]:
        _add(values, number, 1, sums)
    opaque = {n: times for n, times in sums.items() if times and not _goes_on(values, graph, n)}
    return tuple(sorted(opaque.items())), any(values.home[n] in inner for n in opaque)


def _add(values: ValueNumbers, number: int, times: int, sums: dict[int, int]) -> None:
    key = values.keys[number]
    if key[0] == "plus":
        _add(values, key[1], times, sums)
    elif key[0] in ("add", "sub"):
        _add(values, key[2], times, sums)
        _add(values, key[3], -times if key[0] == "sub" else times, sums)
    elif key[0] == "times":
        _add(values, key[2], times * key[1][0], sums)
    elif key[0] in ("extended", "cut"):
        _add(values, key[2], times, sums)
    elif key[0] != "constant":
        sums[number] = sums.get(number, 0) + times


def _goes_on(values: ValueNumbers, graph: Flow, number: int) -> bool:
    """Whether a value is a loop variable that every iteration changes by the same amount."""
    key = values.keys[number]
    if key[0] != "phi" or key[1] not in graph.loops:
        return False
    loop = graph.loops[key[1]]
    for block in (b for b in graph.before[key[1]] if b in loop):
        sums: dict[int, int] = {}
        last = values.leaves[block].get(key[2])
        if last is None:
            return False
        _add(values, last, 1, sums)
        if sums.pop(number, 0) != 1 or any(values.home[n] in loop for n in sums):
            return False
    return True
