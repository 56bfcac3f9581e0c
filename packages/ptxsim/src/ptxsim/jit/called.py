"""`called`: compiled code of a unit instruction that the main loop calls by its address.

Such a function is compiled for itself when a kernel first needs it, so that the main loop does not grow with
it. What it must know of its instruction stands in a `Block`, whose address is in column CALLED_BLOCK.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numba import types

from ptxsim.isa.mathlib.inner import WHOLE
from ptxsim.jit.compiled import compiled
from ptxsim.jit.host import address_in_host

_SIGNATURE = (types.uint64, types.int64, types.int64, types.uint64, types.uint64, types.int64)


def called(function: Callable) -> Callable:
    """For `f(row, m, warp, registers, predicates, control)`, 1 or 0: does what the row at an address says for
    lanes m; or nothing at all, and the instruction's handler must.
    """
    return compiled(no_cfunc_wrapper=False, error_model="numpy", pipeline_class=WHOLE)(function)


@functools.cache
def address_of(function) -> int:
    """Of the machine code of a called function, which is compiled if need be."""
    function.compile(_SIGNATURE)
    (done,) = function.overloads.values()
    return done.library.get_pointer_to_function(done.fndesc.llvm_cfunc_wrapper_name)


class Block:
    """Whole numbers, and the addresses of contiguous arrays, as words in the order given."""

    def __init__(self, *values: int | np.ndarray):
        self._arrays = [value for value in values if isinstance(value, np.ndarray)]  # kept alive
        numbers = [
            address_in_host(value) if isinstance(value, np.ndarray) else int(value) for value in values
        ]
        self._words = np.array(numbers, np.int64)
        self.address = address_in_host(self._words)
