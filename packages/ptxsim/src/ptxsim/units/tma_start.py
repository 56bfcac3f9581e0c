"""Where a tensor copy may lie. Loads may begin before the tensor, and bring zeros or NaNs; stores may not.

An H200 ends with an illegal instruction at each of these (research/chip/tensor_copies.py). That a store has
no negative coordinates is also text: CUDA C++ Programming Guide, TMA, negative indices. What only that chip
was asked is an error for it, and a review for later ones.
"""

from __future__ import annotations

from ptxsim.machine.cluster import Cluster
from ptxsim.machine.im2col_map import Im2colMap
from ptxsim.machine.split import Lanes
from ptxsim.machine.tensor_map import TensorMap
from ptxsim.units.tma_called import UNIT


def check_start(cluster: Cluster, split: Lanes, tmap: TensorMap, start: tuple[int, ...], store: bool) -> None:
    """Findings for a copy that lies where no chip takes it."""
    if start[0] * tmap.dtype.itemsize % UNIT:
        _off_the_grid(cluster, split, tmap, start[0] * tmap.dtype.itemsize)
    if not store:
        return
    if min(start) < 0 and len(start) == tmap.rank:  # no chip was asked for .tile::scatter4
        _before_the_tensor(cluster, split, tmap, start)
    elif isinstance(tmap, Im2colMap) and (min(tmap.lower) < 0 or max(tmap.upper) > 0):
        _box_outside(cluster, split, tmap)


def _off_the_grid(cluster: Cluster, split: Lanes, tmap: TensorMap, offset: int) -> None:
    message = (
        f"a tensor copy of {_name(tmap)} starts {offset} B into the innermost dimension: an H200 takes "
        f"multiples of {UNIT} B, and ends with an illegal instruction at others"
    )
    hint = f"start at a multiple of {UNIT // tmap.dtype.itemsize * tmap.packed} elements"
    cluster.reporter.add("misaligned", _severity(cluster), message, hint, split)


def _before_the_tensor(cluster: Cluster, split: Lanes, tmap: TensorMap, start: tuple[int, ...]) -> None:
    message = f"a TMA store to {_name(tmap)} begins before the tensor, at {start}: only loads may"
    hint = "a store may pass the end of a tensor, but begins inside: let threads store what lies before it"
    cluster.reporter.add("out-of-bounds", "error", message, hint, split)


def _box_outside(cluster: Cluster, split: Lanes, tmap: Im2colMap) -> None:
    message = (
        f"an im2col store to {_name(tmap)}, whose bounding box has the corners {tmap.lower} and {tmap.upper}:"
        " where it reaches outside of the tensor an H200 ends with an illegal instruction"
    )
    hint = "for stores, encode a map whose lower corner is at least 0 and whose upper one at most 0"
    cluster.reporter.add("out-of-bounds", _severity(cluster), message, hint, split)


def _severity(cluster: Cluster) -> str:
    """Of what is known of one chip."""
    return "error" if cluster.launch.module.target[0].startswith("sm_90") else "review"


def _name(tmap: TensorMap) -> str:
    return tmap.name or "a tensor"
