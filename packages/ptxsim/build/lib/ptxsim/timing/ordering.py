"""The order that ptxas gives to the steps of a warp, within what no barrier and no wait divides.

A step is (kind, costs, registers it waits for, registers it fills).
"""

from __future__ import annotations

RUN, SHARED, GLOBAL, PRODUCT, OTHER, ISSUE, WAIT, TMEM, TMEM_WAIT = range(9)

HELD = 8  # such registers of a thread, in SASS of CUDA 13.0 (`plain/gemm.cu`: 4 of 4 bytes, 1 to 3 of 16)

JOINED = 2  # a run ends with a branch back to a turn that ptxas joins with this one (turns.py)
AHEAD = 64  # issue slots of arithmetic for addresses that a load takes along: more registers it does not get


def hoisted(steps: list[tuple]) -> list[tuple]:
    """Loads move up within their basic block, before what does not give them an address: ptxas does that.

    They pass runs and mma.sync alone, no store, wait or other instruction. Loads of global memory, which take
    longest, take the arithmetic of their addresses along, and pass stores to shared memory, if few registers
    hold what has come and is not stored yet. They also pass the ends of turns that ptxas joins.
    """
    out: list[tuple] = []
    for step in steps:
        place = len(out)
        if step[0] in (SHARED, GLOBAL) and step[3] and not _writes(step):
            place, step = _moved(out, step)
            out[place:] = [_without(before, step[3]) for before in out[place:]]
        out.insert(place, step)
    return out


def _without(run: tuple, loaded: tuple) -> tuple:
    """A run that a load has passed: what it gave the load's registers is for lanes that do not load."""
    if run[0] != RUN or not set(loaded).intersection(run[3]):
        return run
    return (*run[:3], tuple(name for name in run[3] if name not in loaded))


def _moved(out: list[tuple], step: tuple) -> tuple[int, tuple]:
    """(where a load goes, the load: what it waits for there)."""
    place, needs, taken = len(out), set(step[2]), False
    stores = HELD // len(step[3]) if step[0] == GLOBAL else 0  # that it may pass
    left = AHEAD if step[0] == GLOBAL else 0  # slots whose arithmetic it may take along
    while place:
        before = out[place - 1]
        stores -= before[0] == SHARED and _writes(before)
        free = left and before[0] == RUN and before[1][2] == JOINED
        if not (_passable(before) or free or before[0] == SHARED and stores > 0):
            break
        if given := needs.intersection(before[3]):
            if before[0] != RUN or before[1][0] > left:
                break
            left -= before[1][0]
            needs = needs.difference(given).union(*(before[1][3][name] for name in given))
            taken = True
        place -= 1
    while place < len(out) and out[place][0] in (SHARED, GLOBAL) and not _writes(out[place]):
        place += 1
    return place, (*step[:2], tuple(needs), step[3]) if taken else step


def _writes(step: tuple) -> bool:
    return step[1][2] if step[0] == SHARED else step[1][3]


def _passable(step: tuple) -> bool:
    kind, costs = step[:2]
    if kind in (SHARED, GLOBAL):
        return not _writes(step)
    return kind == PRODUCT or kind == RUN and not costs[2]


def among_products(steps: list[tuple], events: list) -> list[tuple]:
    """cp.async that mma.sync follow, with only loads and arithmetic between, stand among these."""
    out: list[tuple] = []
    waiting: list[tuple[int, tuple]] = []  # (where it stood, cp.async)
    for step in steps:
        if step[0] == ISSUE and events[step[1][0]].name == "cp.async":
            waiting.append((len(out), step))
            continue
        if step[0] not in (RUN, PRODUCT) and (step[0] not in (SHARED, GLOBAL) or _writes(step)):
            _put_back(out, waiting)
        out.append(step)
        if waiting and step[0] == PRODUCT:
            out.append(waiting.pop(0)[1])
            waiting = [(len(out), other) for _, other in waiting]
    _put_back(out, waiting)
    return out


def _put_back(out: list[tuple], waiting: list[tuple[int, tuple]]) -> None:
    """Copies that no product follows any more stay where they were, or behind the last of the products."""
    for place, step in reversed(waiting):
        out.insert(place, step)
    waiting.clear()
