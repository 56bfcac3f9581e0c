"""Sparse A of mma.sp and wgmma.mma_async.sp (PTX ISA 9.7.14.6, 9.7.15.6): half of the elements of each chunk
of a row are stored, and four bits of a register say which (isa/layouts/sparsity.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxsim.isa.layouts.sparsity import FIRST, chunk_width, warp_places
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.intrinsics import lane_value
from ptxsim.jit.loop_memory import set_word, word
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Origin, Split
from ptxsim.units.registry import refuse

SLOT, PLACES, CHUNKS, WIDTH, ORDERED, SPARSE_WORDS = range(6)
ROWS = 16  # of a warp
_HINT = "each chunk has two 2-bit positions, which differ, with .ordered_metadata the lower one first"


@dataclass(frozen=True)
class Sparse:
    """What the modifiers and the selector say."""

    bits: int  # of an element
    chunks: int  # of a row
    selector: int
    ordered: bool  # whether the lower position of a chunk has to come first


def decode_sparse(instr, k: int, bits: int, selector) -> Sparse:
    """Raises PtxError if the selector names no threads of a group of four."""
    number, chunks = getattr(selector, "bits", None), k // chunk_width(bits)
    most = 16 // chunks - 1
    if number is None or not 0 <= number <= most:
        raise refuse(instr, f"the sparsity selector is a constant from 0 to {most} here")
    return Sparse(bits, chunks, number, "sp::ordered_metadata" in instr.mods)


def sparse_words(sparse: Sparse | None, slot: int) -> tuple:
    """SPARSE_WORDS words of a ParameterBlock. slot: of the register with the indices; -1 if A is dense."""
    if sparse is None:
        return (-1,) + (0,) * (SPARSE_WORDS - 1)
    places = warp_places(sparse.chunks, sparse.bits, sparse.selector)
    return slot, places, sparse.chunks, chunk_width(sparse.bits), sparse.ordered


@inner
def _index(block, registers, chunk):
    place = word(word(block, PLACES), chunk)
    return lane_value(registers, word(block, SLOT), place >> 5) >> np.uint64(place & 31) & np.uint64(15)


@inner
def _undefined(index, width, ordered):
    first, second = index & np.uint64(3), index >> np.uint64(2)
    if width == 2:
        return index != 4 and index != 14
    return first == second or (ordered != 0 and first > second)


@inner
def all_defined(block, registers):
    """Whether all indices of a warp have a meaning; true if A is dense."""
    for c in range(ROWS * word(block, CHUNKS)):
        if _undefined(_index(block, registers, c), word(block, WIDTH), word(block, ORDERED)):
            return False
    return True


@inner
def expand(block, registers, stored, out, start, found):
    """Fills in a warp's rows of A in `out`, from element `start` on, from half as many stored elements.

    found: address of an int64 for each chunk of `out`, set where the index has no meaning, to the index plus
    16, or plus 32 if all stored elements are zero; or 0.
    """
    width = word(block, WIDTH)
    part = max(width >> 2, 1)  # elements at one position
    for c in range(ROWS * word(block, CHUNKS)):
        index, at = _index(block, registers, c), start + c * width
        if _undefined(index, width, word(block, ORDERED)):
            empty = True
            for e in range(width >> 1):
                empty = empty and stored[(at >> 1) + e] == 0
            if found != 0:
                set_word(found, at // width, np.int64(index) + (32 if empty else 16))
            index = np.uint64(FIRST)
        for e in range(width):
            out[at + e] = 0
        for e in range(width >> 1):
            place = np.int64(index >> np.uint64(2 * (e // part)) & np.uint64(3))
            out[at + (place >> 1 if width == 2 else place * part + e % part)] = stored[(at >> 1) + e]


def report_undefined(cluster: Cluster, where: Split | Origin, sparse: Sparse, found: np.ndarray) -> None:
    """Reports the first index without a meaning, as a review where only zeros are stored: CUTLASS's
    compressor gives such chunks 0b0000, and its sparse GEMMs are right on chips.
    """
    for start, severity in ((16, "error"), (32, "review")):
        (wrong,) = np.nonzero(found // 16 * 16 == start)
        if len(wrong):
            row, chunk = divmod(int(wrong[0]), sparse.chunks)
            what = f"sparse A: metadata of row {row}, chunk {chunk}: {found[wrong[0]] % 16:#06b} is not valid"
            what += "; only zeros are stored there" if severity == "review" else ""
            cluster.reporter.add("illegal", severity, what, _HINT, where, key=("sparse-index", severity))
