"""Checks where a tensor copy starts. Loads may start before the tensor, and then yield zeros or NaNs; stores
may not.

An H200 stops with an illegal instruction in each of these cases (research/chip/tensor_copies.py). The ban on
negative coordinates in stores is also documented: CUDA C++ Programming Guide, TMA, negative indices. Rules
that were only observed on that chip are errors for it, and reviews for later ones.
"""

from __future__ import annotations

from ptxsim.machine.cluster import Cluster
from ptxsim.machine.im2col_map import Im2colMap
from ptxsim.machine.split import Lanes
from ptxsim.machine.tensor_map import TensorMap
from ptxsim.units.tma_called import UNIT


def check_start(cluster: Cluster, split: Lanes, tmap: TensorMap, start: tuple[int, ...], store: bool) -> None:
    """Adds findings for a copy at coordinates that chips do not accept."""
    if start[0] * tmap.dtype.itemsize % UNIT:
        _off_the_grid(cluster, split, tmap, start[0] * tmap.dtype.itemsize)
    if not store:
        return
    if min(start) < 0 and len(start) == tmap.rank:  # .tile::scatter4 was not tried on a chip
        _before_the_tensor(cluster, split, tmap, start)
    elif isinstance(tmap, Im2colMap) and (min(tmap.lower) < 0 or max(tmap.upper) > 0):
        _box_outside(cluster, split, tmap)


def leaves_array(cluster: Cluster, split: Lanes, tmap: TensorMap, start: tuple[int, ...]) -> bool:
    """Whether a copy would pass the end of its array inside the tensor; then, with a finding."""
    if not tmap.passes_end or len(start) == tmap.rank and not tmap.box_passes_end(start):
        return False
    message = (
        f"a tensor copy of {_name(tmap)} at {start} passes the end of its array of {tmap.array.nbytes} B"
    )
    hint = "do the dims and strides of its tensor map count what the array holds?"
    cluster.reporter.add("out-of-bounds", "error", message, hint, split)
    return True


def _off_the_grid(cluster: Cluster, split: Lanes, tmap: TensorMap, offset: int) -> None:
    message = (
        f"a tensor copy of {_name(tmap)} starts {offset} B into the innermost dimension: an H200 takes "
        f"multiples of {UNIT} B, and stops with an illegal instruction at others"
    )
    hint = f"start at a multiple of {UNIT // tmap.dtype.itemsize * tmap.packed} elements"
    cluster.reporter.add("misaligned", _severity(cluster), message, hint, split)


def _before_the_tensor(cluster: Cluster, split: Lanes, tmap: TensorMap, start: tuple[int, ...]) -> None:
    message = f"a TMA store to {_name(tmap)} begins before the tensor, at {start}: only loads may"
    hint = "a store may pass a tensor's end, but must begin inside: let threads store what lies before it"
    cluster.reporter.add("out-of-bounds", "error", message, hint, split)


def _box_outside(cluster: Cluster, split: Lanes, tmap: Im2colMap) -> None:
    message = (
        f"an im2col store to {_name(tmap)}, whose bounding box has the corners {tmap.lower} and {tmap.upper}:"
        " where it reaches outside of the tensor, an H200 stops with an illegal instruction"
    )
    hint = "for stores, encode a map whose lower corner is at least 0 and whose upper one at most 0"
    cluster.reporter.add("out-of-bounds", _severity(cluster), message, hint, split)


def _severity(cluster: Cluster) -> str:
    """The severity of a rule that was observed on one chip only."""
    return "error" if cluster.launch.module.target[0].startswith("sm_90") else "review"


def _name(tmap: TensorMap) -> str:
    return tmap.name or "a tensor"
