"""Everything that the numba text of a `ScalarOp` may call, in one namespace.

`MODULES` are the modules whose source decides what compiled code does (for the hash of a code cache).
"""

from __future__ import annotations

from ptxsim.isa import mathlib_float, mathlib_int, mathlib_narrow, mathlib_soft
from ptxsim.isa.mathlib_float import *  # noqa: F403
from ptxsim.isa.mathlib_int import *  # noqa: F403
from ptxsim.isa.mathlib_narrow import *  # noqa: F403
from ptxsim.isa.mathlib_soft import *  # noqa: F403

MODULES = (mathlib_int, mathlib_float, mathlib_soft, mathlib_narrow)
