"""The order that ptxas gives to the steps of a warp, within what no barrier and no wait divides."""

from __future__ import annotations

from ptxsim.timing.steps import JOINED, Global, Issue, Product, Shared, Step, Stretch

HELD = 8  # such registers of a thread, in SASS of CUDA 13.0 (`plain/gemm.cu`: 4 of 4 bytes, 1 to 3 of 16)
AHEAD = 64  # issue slots of arithmetic for addresses that a load takes along: more registers it does not get


def hoisted(steps: list[Step]) -> list[Step]:
    """Loads move up within their basic block, before what does not give them an address: ptxas does that.

    They pass runs and mma.sync alone, no store, wait or other instruction. Loads of global memory, which take
    longest, take the arithmetic of their addresses along, and pass stores to shared memory, if few registers
    hold what has come and is not stored yet. They also pass the ends of iterations that ptxas joins.
    """
    out: list[Step] = []
    for step in steps:
        place = len(out)
        if step.loads and step.writes:
            place, step = _moved(out, step)
            out[place:] = [_without(before, step.writes) for before in out[place:]]
        out.insert(place, step)
    return out


def _without(run: Step, loaded: tuple[str, ...]) -> Step:
    """A run that a load has passed: what it gave the load's registers is for lanes that do not load."""
    if type(run.does) is not Stretch or not set(loaded).intersection(run.writes):
        return run
    return run._replace(writes=tuple(name for name in run.writes if name not in loaded))


def _moved(out: list[Step], step: Step) -> tuple[int, Step]:
    """(where a load goes, the load: what it waits for there)."""
    place, needs, taken = len(out), set(step.reads), False
    far = type(step.does) is Global
    stores = HELD // len(step.writes) if far else 0  # that it may pass
    left: float = AHEAD if far else 0  # slots whose arithmetic it may take along
    while place:
        before = out[place - 1]
        stores -= type(before.does) is Shared and before.does.write
        free = left and type(before.does) is Stretch and before.does.branches == JOINED
        if not (_passable(before) or free or type(before.does) is Shared and stores > 0):
            break
        if given := needs.intersection(before.writes):
            if type(before.does) is not Stretch or before.does.slots > left:
                break
            left -= before.does.slots
            needs = needs.difference(given).union(*(before.does.roots[name] for name in given))
            taken = True
        place -= 1
    while place < len(out) and out[place].loads:
        place += 1
    return place, step._replace(reads=tuple(needs)) if taken else step


def _passable(step: Step) -> bool:
    does = step.does
    return step.loads or type(does) is Product or type(does) is Stretch and not does.branches


def among_products(steps: list[Step], events: list) -> list[Step]:
    """cp.async that mma.sync follow, with only loads and arithmetic between, stand among these."""
    out: list[Step] = []
    waiting: list[tuple[int, Step]] = []  # (where it stood, cp.async)
    for step in steps:
        if type(step.does) is Issue and events[step.does.event].name == "cp.async":
            waiting.append((len(out), step))
            continue
        if type(step.does) not in (Stretch, Product) and not step.loads:
            _put_back(out, waiting)
        out.append(step)
        if waiting and type(step.does) is Product:
            out.append(waiting.pop(0)[1])
            waiting = [(len(out), other) for _, other in waiting]
    _put_back(out, waiting)
    return out


def _put_back(out: list[Step], waiting: list[tuple[int, Step]]) -> None:
    """Copies that no product follows any more stay where they were, or behind the last of the products."""
    for place, step in reversed(waiting):
        out.insert(place, step)
    waiting.clear()
