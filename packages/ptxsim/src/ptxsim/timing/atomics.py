"""Atomics on shared memory: combines the lanes, which are recorded one by one, into instructions of a warp.

Adding 1 becomes ATOMS.POPC.INC in SASS, which counts all lanes of a word at once, so it takes as many passes
as the fullest bank has words. Other integer atomics take a pass for each lane of the fullest bank. Float sums
become a loop (LDS, FADD, ATOMS.CAST.SPIN, ISETP, BRA) that iterates until all lanes of the fullest word are
done; its swap takes two round trips to memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ptxsim.frontend.ast import Imm
from ptxsim.timing.accesses import BANKS, WORD
from ptxsim.timing.execution import MemoryAccess
from ptxsim.timing.steps import Shared, Step, Stretch

LANES = 32
_FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"}
_OLD, _DONE = "old value", "done"  # registers of the loop


@dataclass
class Atomic:
    """One atomic instruction of a warp on shared memory."""

    row: int
    passes: int  # cycles of the port; of a loop: per iteration
    iterations: int = 0  # of the loop; 0 if it is not a loop


def whole_warps(steps: list, instrs: list) -> list:
    """The steps of a warp, with the lanes of each atomic on shared memory combined into one Atomic."""
    found: list = []
    lanes: list[int] = []  # addresses
    row = -1
    for step in steps:
        if lanes and not (type(step) is MemoryAccess and step.row == row and len(lanes) < LANES):
            found.append(_atomic(row, lanes, instrs[row]))
            lanes = []
        if type(step) is MemoryAccess and step.shared and instrs[step.row].op in ("atom", "red"):
            row = step.row
            lanes += [step.at + place for place in np.frombuffer(step.lanes, np.int64).tolist() or [0]]
        else:
            found.append(step)
    return [*found, _atomic(row, lanes, instrs[row])] if lanes else found


def _atomic(row: int, lanes: list[int], instr) -> Atomic:
    words = Counter(at // WORD for at in lanes)
    loop = bool(_FLOATS.intersection(instr.mods)) and "exch" not in instr.mods
    banks: Counter = Counter()
    for word, times in words.items():
        banks[word % BANKS] += 1 if loop or _adds_one(instr) else times
    return Atomic(row, max(banks.values()), max(words.values()) if loop else 0)


def _adds_one(instr) -> bool:
    value = instr.operands[-1]
    return "add" in instr.mods and isinstance(value, Imm) and value.bits == 1


def played(step: Atomic, row, latency: float) -> Step | list[Step]:
    """The step of a costed execution for an atomic, or the steps of its loop."""
    if not step.iterations:
        return Step(Shared(step.passes, latency, True), row.reads, row.writes)
    load = Step(Shared(1, latency, False), row.reads, (_OLD,))
    add = Step(Stretch(1, {_OLD: 4}, True, needed={_OLD: 0}), (_OLD,), (_OLD,))
    swap = Step(Shared(step.passes, 2 * latency, False), (_OLD,), (_DONE, *row.writes))
    back = Step(Stretch(2, {}, True, needed={_DONE: 0}), (_DONE,))
    return [load, add, swap, back] * step.iterations
