"""`called`: compiled code of a unit instruction that the main loop calls by its address.

Such a function is compiled separately when a kernel first needs it, so that the main loop does not grow. The
facts about its instruction are in a `ParameterBlock`, whose address is in column CALLED_BLOCK.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numba import types

from ptxsim.isa.mathlib.inner import WHOLE
from ptxsim.jit.compiled import code_address, compiled
from ptxsim.jit.host import address_in_host

_SIGNATURE = (types.uint64, types.int64, types.int64, types.uint64, types.uint64, types.int64)


def called(function: Callable) -> Callable:
    """Decorates `f(row, m, warp, registers, predicates, control)`. It executes the row at address `row` for
    the lanes in m and returns 1, or does nothing and returns 0; then the instruction's handler has to do it.
    """
    return compiled(no_cfunc_wrapper=False, error_model="numpy", pipeline_class=WHOLE)(function)


@functools.cache
def address_of(function) -> int:
    """The address of the machine code of a called function, which is compiled if necessary."""
    function.compile(_SIGNATURE)
    return code_address(function)


class ParameterBlock:
    """Parameters of called code as 64-bit words: integers, and addresses of contiguous arrays, in order."""

    def __init__(self, *values: int | np.ndarray):
        self._arrays = [value for value in values if isinstance(value, np.ndarray)]  # kept alive
        numbers = [
            address_in_host(value) if isinstance(value, np.ndarray) else int(value) for value in values
        ]
        self._words = np.array(numbers, np.int64)
        self.address = address_in_host(self._words)
