"""Layouts of tensor memory, which has 128 lanes x 512 columns of 32 bits.

* `load_layout`: registers of tcgen05.ld / .st (PTX ISA 9.7.16.2.3);
* `result_layout`, `operand_layout`: matrices D and A of tcgen05.mma (PTX ISA 9.7.16.10.5).

Lanes and columns are relative to the instruction's address. Results are cached and read-only.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ptxsim.isa.layouts.tables import table

# shape -> (registers per .x1, columns per .x1, largest .num)
LOAD_SHAPES = {
    "32x32b": (1, 1, 128),
    "16x64b": (1, 2, 128),
    "16x128b": (2, 4, 64),
    "16x256b": (4, 8, 32),
    "16x32bx2": (1, 1, 128),
}


@lru_cache(maxsize=64)
def load_layout(shape: str, num: int, split: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(lane, column) of [thread of the warp, register] in tcgen05.ld / .st: int64[32, registers] each.

    Lanes are relative to the lane of the address. split: immHalfSplitoff of .16x32bx2, in columns. With
    .pack::16b or .unpack::16b, column c (before `split` is added) means the low halves of columns 2c and
    2c + 1. ValueError for a shape or .num that does not exist.
    """
    if shape not in LOAD_SHAPES:
        raise ValueError(f"tcgen05.ld/.st has no shape .{shape}")
    each, width, largest = LOAD_SHAPES[shape]
    if num not in (1, 2, 4, 8, 16, 32, 64, 128) or num > largest:
        raise ValueError(f"tcgen05.ld/.st.{shape} takes .x1 to .x{largest} (powers of two), not .x{num}")
    thread, reg = np.arange(32)[:, None], np.arange(each * num)[None, :]
    if shape == "32x32b":
        return table(thread, reg)
    if shape == "16x32bx2":
        return table(thread % 16, reg + thread // 16 * split)
    if shape == "16x64b":
        return table(thread // 4 + 8 * (thread % 2), thread // 2 % 2 + 2 * reg)
    if shape == "16x128b":
        return table(thread // 4 + 8 * (reg % 2), thread % 4 + 4 * (reg // 2))
    return table(thread // 4 + 8 * (reg // 2 % 2), reg % 2 + 2 * (thread % 4) + 8 * (reg // 4))


def data_path(m: int, cta_group: int = 1, ws: bool = False) -> str:
    """The letter of the data-path layout of a dense tcgen05.mma; with .ws "D", "E" or "G" (9.7.16.10.5)."""
    one = {128: "D", 64: "E", 32: "G"} if ws else {128: "D", 64: "F"}
    letter = (one if cta_group == 1 else {256: "A", 128: "B"}).get(m)
    if letter is None:
        raise ValueError(f"tcgen05.mma.cta_group::{cta_group} has no M={m}")
    return letter


@lru_cache(maxsize=64)
def result_layout(
    m: int, n: int, cta_group: int = 1, ws: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(CTA of the pair, lane, column) of D[row, column]: int64[m, n] each.

    A 32-bit column holds one element, also of f16 (in its low half). If only 16 of each warp's 32 lanes are
    used (layout F), lane 16 in the address selects the upper ones.
    """
    letter = data_path(m, cta_group, ws)
    row, col = np.arange(m)[:, None], np.arange(n)[None, :]
    cta, row = np.divmod(row, m // cta_group)
    if letter in "AD":
        lane = row
    elif letter == "F":
        lane = row // 16 * 32 + row % 16
    else:  # halves (in layout G: quarters) of the columns are in different lanes
        folds = 4 if letter == "G" else 2
        fold, col = np.divmod(col, n // folds)
        lane = row + 128 // folds * fold
    return table(cta, lane, col)


@lru_cache(maxsize=64)
def operand_layout(
    m: int, k: int, itemsize: int, cta_group: int = 1, ws: bool = False
) -> tuple[np.ndarray, ...]:
    """(CTA of the pair, lane, byte) of A[row, k] in tensor memory: int64[m, k] each.

    Elements are packed, `4 // itemsize` per column; byte is the offset along the columns of a lane. M=128 of
    a pair reads lanes 0-63 for the first half of N and lanes 64-127 for the second, which must hold a copy.
    For M=64, A is in 16 of each warp's lanes, as D is, and starts at the same one of lanes 0 and 16 as D.
    """
    row, byte = np.arange(m)[:, None], np.arange(k)[None, :] * itemsize
    cta, lane = np.divmod(row, m // cta_group)
    if data_path(m, cta_group, ws) == "F":
        lane = lane // 16 * 32 + lane % 16
    return table(cta, lane, byte)
