"""Shrinks a program that shows a disagreement, as long as it still shows one of the same class."""

from __future__ import annotations

from research.truth.compare import check
from research.truth.execute import Undefined
from research.truth.model import Program


def minimise(program: Program, name: str, tries: int = 120) -> Program:
    """Deletes events one by one, then in adjacent pairs, while class `name` persists."""
    best, left = program.copy().number(), [tries]
    changed = True
    while changed and left[0] > 0:
        changed = False
        for size in (8, 3, 2, 1):
            where = [(i, at) for i, code in enumerate(best.code) for at in range(0, len(code), size)]
            for i, at in reversed(where):
                smaller = _without(best, i, at, size)
                if smaller is not None and left[0] > 0 and _shows(smaller, name, left):
                    best, changed = smaller, True
    return best


def _without(program: Program, i: int, at: int, size: int) -> Program | None:
    if at >= len(program.code[i]):
        return None
    smaller = program.copy()
    del smaller.code[i][at : at + size]
    used = {op.a["bar"] for op in smaller.ops() if "bar" in op.a}
    smaller.bars = {place: count for place, count in smaller.bars.items() if place in used}
    return smaller.number()


def _shows(program: Program, name: str, left: list[int]) -> bool:
    left[0] -= 1
    try:
        return any(found == name for found, _ in check(program, deeper=(6,)))
    except Undefined:
        return False
