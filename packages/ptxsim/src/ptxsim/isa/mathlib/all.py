"""Everything that the numba text of a `ScalarOp` may use, in one namespace."""

from __future__ import annotations

from ptxsim.isa.mathlib.bits import *  # noqa: F403
from ptxsim.isa.mathlib.floating import *  # noqa: F403
from ptxsim.isa.mathlib.integer import *  # noqa: F403
from ptxsim.isa.mathlib.small_floats import *  # noqa: F403
from ptxsim.isa.mathlib.soft_float import *  # noqa: F403
from ptxsim.isa.mathlib.video import *  # noqa: F403
