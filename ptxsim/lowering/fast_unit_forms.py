"""Which unit instructions the main loop may do by itself where nobody watches, and the columns of their rows.

An instruction is quick if its usual case needs nothing but registers, the phase of an mbarrier or the places
of the CTA's warps; or if all it does for its thread is to leave its operands to another unit of the chip.
"""

from __future__ import annotations

from ptxsim.frontend.parser import Sink
from ptxsim.isa.operands import MemArg, PredArg
from ptxsim.jit.bytecode import QUICK_BAR, QUICK_ELECT, QUICK_ISSUE, QUICK_WAIT


def quick_columns(row, args: tuple, lists: list[int]) -> dict[str, int]:
    """Columns of a unit row (rows.Row) with resolved operands `args`; {} if only Python does it.

    `lists` takes the slots that an issued instruction reads.
    """
    if row.unit.issued and all(isinstance(target, Sink) for target in row.writes):
        return _issue(args, lists)
    of = _QUICK.get(row.unit.name)
    return (of(row.instr, args) or {}) if of else {}


def _elect(instr, args: tuple) -> dict | None:
    match args:
        case ((int(target), PredArg(code)), int(members)):
            return {"aux": QUICK_ELECT, "d": target, "a": members, "b": code >> 1}


def _wait(instr, args: tuple) -> dict | None:
    """Waits for a parity of a barrier in the .shared window."""
    match args:
        case (PredArg(code), MemArg(slot, offset), int(token), *_):
            if "parity" in instr.mods and {"shared", "shared::cta"} & set(instr.mods):
                return {"aux": QUICK_WAIT, "d": code >> 1, "a": slot, "imm": offset, "b": token}


def _bar(instr, args: tuple) -> dict | None:
    """A barrier of the whole CTA: no thread count, no vote, no arrival without a wait."""
    match args:
        case (int(number),) if not {"arrive", "red"} & set(instr.mods):
            return {"aux": QUICK_BAR, "a": number}


def _issue(args: tuple, lists: list[int]) -> dict[str, int]:
    slots, predicates, rest = [], [], list(args)
    while rest:
        match rest.pop():
            case tuple(items):
                rest += items
            case MemArg(slot, _, parts):
                slots.append(slot)
                rest += parts
            case PredArg(code):
                predicates.append(code >> 1)
            case int(slot) if slot >= 0:
                slots.append(slot)
    start = len(lists)
    lists += [*dict.fromkeys(slots), *dict.fromkeys(predicates)]
    return {"aux": QUICK_ISSUE, "d": start, "b": len(set(slots)), "c": len(set(predicates))}


_QUICK = {
    "elect.sync": _elect,
    "mbarrier.try_wait": _wait,
    "mbarrier.test_wait": _wait,
    "bar.sync": _bar,
    "bar.cta": _bar,
    "barrier.sync": _bar,
    "barrier.cta": _bar,
}
