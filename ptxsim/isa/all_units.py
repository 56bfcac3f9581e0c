"""Imports every file that registers unit instructions."""

from ptxsim.isa import (  # noqa: F401
    atomics,
    barriers,
    bulk,
    cp_async,
    fences,
    matrix_moves,
    mbarriers,
    mma,
    tcgen05,
    tcgen05_alloc,
    tensormap,
    tma,
    warp_ops,
    wgmma,
)
