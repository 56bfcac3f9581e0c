"""Which other parts of a buffer are written, if the part that is read is not: they show which index is
wrong.
"""

from __future__ import annotations

import itertools

import numpy as np

from ptxsim.checks.phrases import line_of, lines_text
from ptxsim.frontend.ast import Imm
from ptxsim.lowering.emit import Program

_MOST = 3  # parts that are listed
_COPIES = ("cp.async.ca", "cp.async.cg")


def written_parts(flags: np.ndarray) -> list[tuple[int, int]]:
    """The runs of true flags as (first, last)."""
    padded = np.concatenate(([0], np.asarray(flags, bool).astype(np.int8), [0]))
    steps = np.diff(padded)
    firsts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    return list(zip(firsts.tolist(), (ends - 1).tolist(), strict=True))


def told_of(flags: np.ndarray, what: str, unit: str) -> str:
    """`; nothing of Asmem is written so far`, or which parts are; evenly spaced parts by their distance."""
    parts = written_parts(flags)
    if not parts:
        return f"; nothing of {what} is written so far"
    lengths = {last - first + 1 for first, last in parts}
    steps = {after[0] - before[0] for before, after in itertools.pairwise(parts)}
    if len(parts) > 2 and len(lengths) == len(steps) == 1:
        runs = f"{lengths.pop()} of every {steps.pop()} {unit} from {parts[0][0]} on"
    else:
        runs = f"{unit} " + " and ".join(f"{first} to {last}" for first, last in parts[:_MOST])
        runs += ", among others," if len(parts) > _MOST else ""
    return f"; of {what}, {runs} are written so far"


def short_copies(program: Program, flags: np.ndarray, at: int) -> str:
    """`; beside it cp.async copies 8 B (line 7)`, if so much is written before or behind the gap at `at`."""
    parts = written_parts(flags)
    beside = [
        max((p for p in parts if p[1] < at), default=None),
        min((p for p in parts if p[0] > at), default=None),
    ]
    sizes = {part[1] - part[0] + 1 for part in beside if part is not None}
    copies = (r for r, i in program.by_row.items() if i.op == "cp" and i.name.startswith(_COPIES))
    short = [
        (i.bits, r) for r in copies if isinstance(i := program.by_row[r].operands[2], Imm) and i.bits in sizes
    ]
    lines = sorted({line_of(program, row) for size, row in short if size == short[0][0]})[:_MOST]
    return f"; beside it cp.async copies {short[0][0]} B ({lines_text(lines)})" if lines else ""
