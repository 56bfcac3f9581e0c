"""Imports every file that registers unit instructions."""

from ptxsim.isa import atomics, barriers, cp_async, fences, matrix_moves, mma, tcgen05, tma, warp_ops  # noqa: F401
