"""Imports every file that registers unit instructions."""

from ptxsim.isa import (  # noqa: F401
    atomics,
    barriers,
    cp_async,
    fences,
    matrix_moves,
    mbarriers,
    mma,
    tcgen05,
    tma,
    warp_ops,
    wgmma,
)
