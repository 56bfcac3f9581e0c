"""Everything that the numba text of a `ScalarOp` may call, in one namespace."""

from __future__ import annotations

from ptxsim.isa.mathlib_bits import *  # noqa: F403
from ptxsim.isa.mathlib_float import *  # noqa: F403
from ptxsim.isa.mathlib_int import *  # noqa: F403
from ptxsim.isa.mathlib_narrow import *  # noqa: F403
from ptxsim.isa.mathlib_soft import *  # noqa: F403
