"""Imports every file that registers unit instructions."""

from ptxsim.units import (
    atomics,  # noqa: F401
    barriers,  # noqa: F401
    cp_async,  # noqa: F401
    mma,  # noqa: F401
    tcgen05_alloc,  # noqa: F401
    tensormap,  # noqa: F401
    tma,  # noqa: F401
    wgmma,  # noqa: F401
)
from ptxsim.units import bulk_copy as bulk  # noqa: F401
from ptxsim.units import fences_and_hints as fences  # noqa: F401
from ptxsim.units import ldmatrix as matrix_moves  # noqa: F401
from ptxsim.units import mbarrier as mbarriers  # noqa: F401
from ptxsim.units import tcgen05_ld_st as tcgen05  # noqa: F401
from ptxsim.units import warp as warp_ops  # noqa: F401
