"""Values of special registers (PTX ISA 10) for the 32 lanes of one warp."""

from __future__ import annotations

import numpy as np

from ptxsim.frontend.ast import PtxError

# Registers that give libraries offsets in reserved shared memory, with the offset in a variable that is added
# to the kernels that read them
RESERVED = {"%reserved_smem_offset_0": 0, "%reserved_smem_offset_1": 32}
CLOCKS = ("clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi")  # warp_ops
_CHANGING = {"%ctaid", "%clusterid", "%smid"}
SMS = 148  # of a B200
_AXES = {"x": 0, "y": 1, "z": 2}
_LANES = np.arange(32)


def known_special(name: str) -> bool:
    """Whether special register `name` is modelled; the clocks get their values when they are read."""
    base, _, axis = name.lstrip("%").partition(".")
    return base in (_VECTORS if axis else _SCALARS) and (axis in _AXES or not axis)


def depends_on_cluster(name: str) -> bool:
    """Whether a special register differs between the clusters of a launch."""
    return name.partition(".")[0] in _CHANGING


def special_value(name: str, launch, cluster, warp: int, thread: np.ndarray | None):
    """The value of special register `name`, a number or uint64 (32,). thread: linear index of each lane in
    the CTA.
    """
    base, _, axis = name.lstrip("%").partition(".")
    rank = warp // cluster.warps_per_cta
    if axis and base in _VECTORS:
        return _VECTORS[base](launch, cluster, rank, thread)[_AXES[axis]]
    if base in _SCALARS:
        return _SCALARS[base](launch, cluster, rank, warp % cluster.warps_per_cta)
    raise PtxError(f"special register {name} is not modelled", launch.program.function.line, name)


def _tid(launch, cluster, rank, thread):
    nx, ny, _ = launch.block
    return thread % nx, thread // nx % ny, thread // (nx * ny)


def _within(launch, rank: int) -> tuple[int, int, int]:
    sx, sy, _ = launch.cluster
    return rank % sx, rank // sx % sy, rank // (sx * sy)


_VECTORS = {
    "tid": _tid,
    "ntid": lambda launch, *_: launch.block,
    "ctaid": lambda launch, cluster, rank, _: cluster.cta_ids[rank],
    "nctaid": lambda launch, *_: launch.grid,
    "clusterid": lambda launch, cluster, *_: launch.cluster_id(cluster.index),
    "nclusterid": lambda launch, *_: launch.clusters,
    "cluster_ctaid": lambda launch, cluster, rank, _: _within(launch, rank),
    "cluster_nctaid": lambda launch, *_: launch.cluster,
}


def _sm(launch, cluster, rank, warp) -> int:
    x, y, z = cluster.cta_ids[rank]
    return (x + launch.grid[0] * (y + launch.grid[1] * z)) % SMS


_SCALARS = {
    "laneid": lambda *_: _LANES,
    "warpid": lambda launch, cluster, rank, warp: warp,
    "nwarpid": lambda *_: 64,
    "smid": _sm,
    "nsmid": lambda *_: SMS,
    "gridid": lambda *_: 1,
    "cluster_ctarank": lambda launch, cluster, rank, warp: rank,
    "cluster_nctarank": lambda launch, *_: launch.ctas_per_cluster,
    "is_explicit_cluster": lambda launch, *_: int(launch.ctas_per_cluster > 1),
    "lanemask_eq": lambda *_: 1 << _LANES,
    "lanemask_lt": lambda *_: (1 << _LANES) - 1,
    "lanemask_le": lambda *_: (2 << _LANES) - 1,
    "lanemask_gt": lambda *_: 0xFFFF_FFFF & ~((2 << _LANES) - 1),
    "lanemask_ge": lambda *_: 0xFFFF_FFFF & ~((1 << _LANES) - 1),
    "dynamic_smem_size": lambda launch, *_: launch.shared_bytes,
    "total_smem_size": lambda launch, *_: launch.shared_end - 1024,
    "aggr_smem_size": lambda launch, *_: launch.shared_end,
    "reserved_smem_offset_begin": lambda *_: 0,
    "reserved_smem_offset_end": lambda *_: 1024,
    "reserved_smem_offset_cap": lambda *_: 1024,
    "envreg1": lambda launch, *_: launch.grid_barrier >> 32,  # CUDA's driver puts the address of the
    "envreg2": lambda launch, *_: launch.grid_barrier & 0xFFFF_FFFF,  # grid barrier into these two
    "WARP_SZ": lambda *_: 32,
    **dict.fromkeys(CLOCKS, lambda *_: 0),
}
