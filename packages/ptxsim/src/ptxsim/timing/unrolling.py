"""Which iterations of a loop ptxas joins: it unrolls an innermost loop four times.

CUDA 13.0: the SASS of 24 kernels with such a loop, from different compilers, contains 4 + 2 + 1 copies of its
loads.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxsim.timing.execution import Run
from ptxsim.timing.steps import Global, Step, Stretch

UNROLLED = 4
LONGEST = 40  # instructions of an iteration: ptxas joins iterations of 32, but not those of 52
NAMES = 1009  # names per register: more than four iterations have loads


def joined(steps: list, sass_counts: Sequence[float]) -> set[int]:
    """Indices of steps that branch back to an iteration which ptxas joins with the previous one.

    sass_counts: row -> instructions; ptxas does not join long iterations.
    """
    back = [
        (place, steps[place].last)
        for place in range(len(steps) - 1)
        if _goes_back(steps, place)
        and sum(sass_counts[_row(steps[place + 1]) : steps[place].last + 1]) <= LONGEST
    ]
    found, iteration = set(), 0
    for number, (place, row) in enumerate(back):
        before, after = (back[i][1] if 0 <= i < len(back) else None for i in (number - 1, number + 1))
        iteration = iteration + 1 if row == before else 1
        if row in (before, after) and iteration % UNROLLED:
            found.add(place)
    return found


def _goes_back(steps: list, place: int) -> bool:
    step, after = steps[place], steps[place + 1]
    return type(step) is Run and 0 <= _row(after) <= step.last


def _row(step) -> int:
    return step.first if type(step) is Run else step.row


def renamed(out: list[Step]) -> list[Step]:
    """The steps with a separate register name for the result of each global load. ptxas, too, gives a load
    that it moves up past the last reader of its register another register.
    """
    names: dict[str, str] = {}
    result = []
    for number, (does, reads, writes) in enumerate(out):
        if names and not names.keys().isdisjoint(reads):
            does, reads = _reading(does, names), tuple(names.get(r, r) for r in reads)
        if type(does) is Global and not does.write:
            names.update((name, f"{name}'{number % NAMES}") for name in writes)
            writes = tuple(names[name] for name in writes)
        else:
            for name in writes:
                names.pop(name, None)
        result.append(Step(does, reads, writes))
    return result


def _reading(does, names: dict[str, str]):
    """The costs of a step after renaming of what it reads; a Stretch names registers in its costs, too."""
    if type(does) is not Stretch:
        return does
    roots = {written: frozenset(names.get(r, r) for r in found) for written, found in does.roots.items()}
    needed = {names.get(r, r): slot for r, slot in does.needed.items()}
    return does._replace(roots=roots, needed=needed)
