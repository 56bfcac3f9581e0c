"""Iterations of a loop that ptxas joins: it unrolls an innermost loop four times.

CUDA 13.0: 4 + 2 + 1 copies of its loads stand in the SASS of 24 kernels that have such a loop, whoever wrote
their PTX.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxsim.timing.steps import Global, Step, Stretch
from ptxsim.timing.tape import Run

UNROLLED = 4
LONGEST = 40  # instructions of an iteration: those of 32 are joined in SASS, one of 52 is not
NAMES = 1009  # of a register: more than the loads of four iterations


def joined(steps: list, sass_counts: Sequence[float]) -> set[int]:
    """Places among the steps of a warp of branches back to an iteration that ptxas joins with the one
    before. sass_counts: row -> instructions; ptxas leaves long iterations alone.
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
    """The steps with a name of its own for what each load of global memory brings, as registers are: a load
    that moves up past its register's last reader takes another one.
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
    """What a step does that reads registers by their new names: a run says when it needs which."""
    if type(does) is not Stretch:
        return does
    roots = {written: frozenset(names.get(r, r) for r in found) for written, found in does.roots.items()}
    needed = {names.get(r, r): slot for r, slot in does.needed.items()}
    return does._replace(roots=roots, needed=needed)
