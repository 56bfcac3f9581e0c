"""Branches around plain instructions, and loops of plain instructions: lanes that jump to the meeting point
only wait there, so they need no split of their own.
"""

from __future__ import annotations

import numpy as np

from ptxsim.frontend.ast import Instr
from ptxsim.jit.bytecode import BRA, BRA_EARLY, IMM, OP, OTHERS, REJOIN, TAKEN, UNIT
from ptxsim.units.registry import for_tensor_core


def with_early_arrivals(code: np.ndarray, instrs: list[Instr | None]) -> np.ndarray:
    """Sets BRA_EARLY, and returns the rows.

    Not if the other lanes reach a unit instruction, because then warps would take turns in a different order.
    Work for the tensor core is allowed, so that MMAs, each after an `elect.sync`, still run as one product.
    """
    met = [
        kind == UNIT and not for_tensor_core(i) for kind, i in zip(code[:, OP].tolist(), instrs, strict=True)
    ]
    units = np.concatenate([[0], np.cumsum(met)])
    rows = np.flatnonzero(code[:, OP] == BRA)
    target, meeting = code[rows, IMM], code[rows, REJOIN]
    around = (meeting == target) & (target > rows) & (units[target] == units[rows])
    loops = (meeting == rows + 1) & (target <= rows) & (units[rows] == units[target])
    code[rows, BRA_EARLY] = np.where(around, TAKEN, np.where(loops, OTHERS, 0))
    return code
