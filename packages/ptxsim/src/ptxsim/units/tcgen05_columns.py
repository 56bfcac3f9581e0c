"""Zero-column masks of tcgen05.mma.ws (PTX ISA 9.7.16.4.3): which columns of B count, and where they lie.

`skip span` counts columns of zeros and `use span` columns of B, as in the ISA's examples and in CUTLASS; its
table has the two descriptions the other way round.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ptxsim.isa.layouts.descriptors import bit_field

MAX_SHIFT = {32: 16, 64: 32, 128: 32}  # by M


@dataclass(frozen=True, eq=False)
class ColumnMask:
    shift: int  # column j is the one at j + shift in shared memory
    used: np.ndarray  # per column; all others are zeros

    def rows(self, per: int) -> int:
        """Rows of the operand in shared memory from its start on, in chunks of `per` rows."""
        return -(-(len(self.used) + self.shift) // per) * per

    def chunks(self, index: np.ndarray, per: int) -> np.ndarray:
        """Those of the chunks of these rows (`Chunks.index`) that hold a column that counts."""
        known = np.flatnonzero(self.used) + self.shift
        return index[known] if per == 1 else index.take(np.unique(known // per), axis=1)

    def applied(self, values: np.ndarray) -> np.ndarray:
        """float32 (N, K): B, from the values of these rows."""
        return np.where(self.used[:, None], values[self.shift :][: len(self.used)], np.float32(0))


@functools.lru_cache(maxsize=256)
def column_mask(bits: int, m: int, n: int, instruction: int) -> ColumnMask:
    """instruction: the instruction descriptor. ValueError if the mask is not legal."""
    where, shift = f"zero-column mask {bits:#x}", bit_field(bits, 56, 6)
    reserved = bits & (7 << 36 | 3 << 62)
    if reserved:
        raise ValueError(f"{where}: reserved bits {reserved:#x} are set")
    if shift > min(MAX_SHIFT[m], (0, 8, 16, 32)[bit_field(instruction, 30, 2)]):
        raise ValueError(f"{where}: a shift of {shift} columns, more than M={m} or the instruction allows")
    used, width = np.ones(n, bool), n * m // 128
    zeros, ones = bit_field(bits, 40, 8) + 1, bit_field(bits, 48, 8) + 1
    for part in range(128 // m if bit_field(bits, 39, 1) else 0):
        skipped, zeros_first = bit_field(bits, 8 * part, 8), bit_field(bits, 32 + part, 1)
        if skipped >= (zeros if zeros_first else ones):
            raise NotImplementedError(f"{where}: start count {skipped} beyond the first span")
        at = (np.arange(width) + skipped) % (zeros + ones)
        used[part * width :][:width] = at >= zeros if zeros_first else at < ones
    return ColumnMask(shift, used)
