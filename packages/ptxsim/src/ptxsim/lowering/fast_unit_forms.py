"""Columns of unit rows that the main loop executes by itself without observers.

These are fast forms, which are defined with their units (`FastForm` in units/registry.py), and instructions
that only hand their operands to another unit of the chip.
"""

from __future__ import annotations

import numpy as np

from ptxsim.frontend.ast import Sink
from ptxsim.isa.operands import MemArg, PredArg
from ptxsim.jit.bytecode import (
    FAST_EITHER,
    FAST_ISSUE,
    ISSUE_MOST,
    OP,
    UNIT,
    UNIT_FORM,
    UNIT_LIST,
    UNIT_PREDICATES,
    UNIT_SLOTS,
)
from ptxsim.units.registry import fast_number

_ISSUED = [OP, UNIT_FORM, UNIT_LIST, UNIT_SLOTS, UNIT_PREDICATES]


def fast_columns(row, args: tuple, lists: list[int]) -> dict[str, int]:
    """Columns of a unit row (instruction_selection.Row) with resolved operands `args`; {} if only a handler
    can execute it. Appends the slots that a queued instruction reads to `lists`.
    """
    unit = row.unit
    if unit.fire_and_forget and all(isinstance(target, Sink) for target in row.writes):
        return _issue(args, lists)
    columns = unit.fast.encode(row.instr, args) if unit.fast and not unit.fast.called else None
    return {"unit_form": fast_number(unit.fast), **columns} if columns else {}


def _issue(args: tuple, lists: list[int]) -> dict[str, int]:
    slots: dict[int, None] = {}
    predicates: dict[int, None] = {}
    rest = list(args)
    while rest:
        match rest.pop():
            case tuple(items):
                rest += items
            case MemArg(slot, _, parts):
                slots[slot] = None
                rest += parts
            case PredArg(code):
                predicates[code >> 1] = None
            case int(slot) if slot >= 0:
                slots[slot] = None
    start = len(lists)
    if len(slots) + len(predicates) > ISSUE_MOST:
        return {}
    lists += [*slots, *predicates]
    counts = {"unit_slots": len(slots), "unit_predicates": len(predicates)}
    return {"unit_form": FAST_ISSUE, "unit_list": start, **counts}


def issued_slots(code: np.ndarray, lists: list[int]) -> list[list[int]]:
    """Per row: the slots (~slot for predicates) that `_issue` has listed."""
    found = []
    for kind, form, start, slots, predicates in code[:, _ISSUED].tolist():
        issued = kind == UNIT and form in (FAST_ISSUE, FAST_EITHER)
        end = start + slots
        found.append([*lists[start:end], *(~s for s in lists[end : end + predicates])] if issued else [])
    return found
