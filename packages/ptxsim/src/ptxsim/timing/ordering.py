"""Reorders the steps of a warp as ptxas would, between barriers and waits; used without machine code."""

from __future__ import annotations

from ptxsim.timing.steps import JOINED, Global, Issue, Product, Shared, Step, Stretch

HELD = 8  # registers per thread for early loads in SASS (CUDA 13.0, `plain/gemm.cu`: 4 of 4, 1 to 3 of 16 B)
AHEAD = 64  # issue slots of address arithmetic that a load takes along at most, for want of registers


def hoisted(steps: list[Step]) -> list[Step]:
    """The steps with loads moved up within their basic block, past steps that do not compute their addresses.

    Loads pass only runs and mma.sync, no store, wait or other instruction. Loads of global memory, the
    slowest, take their address arithmetic along, and pass stores to shared memory as long as few registers
    hold loaded values that are not stored yet. They also pass the ends of iterations that ptxas joins.
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
    """A run that a load has passed, without its writes to the load's registers: they are for lanes that do
    not load.
    """
    if type(run.does) is not Stretch or not set(loaded).intersection(run.writes):
        return run
    return run._replace(writes=tuple(name for name in run.writes if name not in loaded))


def _moved(out: list[Step], step: Step) -> tuple[int, Step]:
    """(the index to which a load moves, the load with the registers for which it waits there)."""
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
    """The steps with cp.async moved among the mma.sync that follow them after only loads and arithmetic."""
    out: list[Step] = []
    waiting: list[tuple[int, Step]] = []  # (its former index, cp.async)
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
    """Puts copies that no further mma.sync follows back in their places, or after the last mma.sync."""
    for place, step in reversed(waiting):
        out.insert(place, step)
    waiting.clear()
