"""Block-scaled tcgen05.mma (PTX ISA 9.7.16.10.7): scale factors in tensor memory, and scaled products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxsim.isa.layouts.block_scale import factor_columns, gather_factors
from ptxsim.isa.layouts.tmem import result_layout
from ptxsim.isa.number_formats import SCALES
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.tensor_memory import COLUMNS, split_address

_PLAIN = 2.0**60  # factors above this, or below its inverse, need float64


def scale_columns(op) -> list[tuple[int, int]]:
    """(first column, columns) of the factors of A and of B, the same in each CTA."""
    rows = op.shape.m // op.group, op.shape.n
    return [
        (split_address(address)[1], factor_columns(count))
        for address, count in zip(op.scales, rows, strict=bool(op.scales))
    ]


def scaled_product(cluster: Cluster, op, rank: int, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """(A * scale_A) (B * scale_B) of one CTA as float32; None, with a finding, if factors are not all in
    allocated columns.

    Each quarter of the lanes uses the factors stored in it; they should be the same in all quarters.
    """
    own, shape = op.task, op.task.shape
    for name, (column, columns) in zip("AB", scale_columns(own), strict=True):
        if column + columns > COLUMNS or not cluster.tmem[rank].allocated(column, columns):
            message = f"tcgen05.mma reads scale factors of {name} from TMEM columns {column}.."
            message += f"{column + columns - 1} of CTA {rank}, which are not (all) allocated"
            cluster.reporter.add("tmem-alloc", "error", message, "", op.where, key=("mma-scales", name))
            return None
    of_a = _factors(cluster, own, rank, 0, len(a), shape.a_id)
    of_b = _factors(cluster, own, rank, 1, len(b), shape.b_id)
    if (of_a == of_a[0]).all() and (of_b == of_b[0]).all():
        return _multiply(a, b, of_a[0], of_b[0], shape.scale)
    _, lane, _ = result_layout(shape.m, shape.n, own.group)
    quarter = lane[: len(a)] // 32
    product = np.zeros((len(a), len(b)), np.float32)
    for q in range(4):
        mine = quarter == q
        product[mine] = _multiply(a, b, of_a[q], of_b[q], shape.scale)[mine]
    return product


def _factors(cluster: Cluster, op, rank: int, side: int, rows: int, first: int) -> np.ndarray:
    lane, column = split_address(op.scales[side])
    return gather_factors(cluster.tmem[rank].cells, lane, column, rows, first, op.shape.factors)


def _multiply(a: np.ndarray, b: np.ndarray, of_a: np.ndarray, of_b: np.ndarray, kind: str) -> np.ndarray:
    scale_a, scale_b = (SCALES[kind](np.ascontiguousarray(raw)) for raw in (of_a, of_b))
    sizes = [x[np.isfinite(x) & (x != 0)] for x in (scale_a, scale_b)]
    plain = all(not x.size or (x.max() < _PLAIN and x.min() > 1 / _PLAIN) for x in sizes)
    form: Any = np.float32 if plain else np.float64
    block = a.shape[1] // of_a.shape[1]
    with np.errstate(invalid="ignore", over="ignore"):
        left = a.astype(form) * np.repeat(scale_a.astype(form), block, axis=1)
        right = b.astype(form) * np.repeat(scale_b.astype(form), block, axis=1)
        return (left @ right.T).astype(np.float32)
