"""Block scaling of tcgen05.mma (PTX ISA 9.7.16.10.7): instruction descriptor, and layout of scale factors.

A factor is a byte of a 32-bit cell of tensor memory. The factor of row i of A (of column i of B) is in lane
i % 32 of every 32 lanes, in column i // 32; the ID in the descriptor says which byte of the cell comes first.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ptxsim.isa.layouts.descriptors import F8F6F4, InstructionDescriptor, bit_field, listed

_TYPES = {"mxf8f6f4": F8F6F4, "mxf4": {1: "e2m1x2"}, "mxf4nvf4": {1: "e2m1x2"}}
_K = {"mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}  # depth of one dense instruction
KINDS = tuple(_K)
_VECTORS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}
# (kind, factors along K) -> formats of the factors, by the descriptor's bit 23
_SCALES = {
    ("mxf8f6f4", 1): {1: "ue8m0"},
    ("mxf4", 2): {1: "ue8m0"},
    ("mxf4nvf4", 2): {1: "ue8m0"},
    ("mxf4nvf4", 4): {0: "ue4m3", 1: "ue8m0"},
}
_SHAPES = {(1, 128): 8, (2, 128): 16, (2, 256): 16}  # (cta_group, M) -> step of N (9.7.16.2.1)


@dataclass(frozen=True)
class BlockScaled(InstructionDescriptor):
    """The fields of the 32-bit instruction descriptor of a block-scaled MMA. K counts elements."""

    factors: int = 1  # per row, along K
    scale: str = "ue8m0"
    a_id: int = 0  # byte of a cell that holds the first factor
    b_id: int = 0


def vector_size(kind: str, modifiers) -> int:
    """The number of factors along K that the modifiers select; ValueError if the kind has no such vector."""
    found = next((n for word, n in _VECTORS.items() if word in modifiers), None)
    if "block16" in modifiers:
        found = 4
    if "block32" in modifiers or found is None:
        found = {"mxf8f6f4": 1}.get(kind, 2)
    if (kind, found) not in _SCALES:
        raise ValueError(f"tcgen05.mma.kind::{kind} has no scale vector of {found} (PTX ISA 9.7.16.10.7.1)")
    return found


def decode_block_scaled(bits: int, kind: str, factors: int, cta_group: int) -> BlockScaled:
    """Fields of the instruction descriptor (PTX ISA 9.7.16.4.2). ValueError if they are not legal."""
    field = functools.partial(bit_field, bits)
    where = f"instruction descriptor 0x{bits:08x} of .kind::{kind}"
    if field(31, 1):
        raise NotImplementedError("K of 96 elements (sm_103a)")
    eight = kind == "mxf8f6f4"
    if field(2, 1) and field(12, 1) and not eight:
        raise NotImplementedError("sparse 4-bit matrices of another version (bit 12)")
    types = []
    for name, low, width in (("A", 7, 3), ("B", 10, 3 if eight else 2)):
        number = field(low, width)
        if number not in _TYPES[kind]:
            raise ValueError(f"{where}: matrix {name} has type {number}, expected {listed(_TYPES[kind])}")
        types.append(_TYPES[kind][number])
    scales = _SCALES[kind, factors]
    if field(23, 1) not in scales:
        raise ValueError(f"{where}: scale format {field(23, 1)}, expected {listed(scales)}")
    m, n = field(24, 5) << 4, field(17, 6) << 3
    step = _SHAPES.get((cta_group, m))
    if step is None or not 0 < n <= 256 or n % step:
        raise ValueError(f"{where}, cta_group::{cta_group}: there is no M={m}, N={n} (PTX ISA 9.7.16.2.1)")
    ids = field(29, 2), field(4, 2)
    if any(i % factors for i in ids):
        raise ValueError(f"{where}: SFA_ID {ids[0]}, SFB_ID {ids[1]} with {factors} factors along K")
    a_mn, b_mn, negate_a, negate_b = (bool(field(low, 1)) for low in (15, 16, 13, 14))
    return BlockScaled(
        m, n, _K[kind] * (1 + field(2, 1)), types[0], types[1], "f32",
        a_mn, b_mn, negate_a, negate_b, False, bool(field(2, 1)),
        factors=factors, scale=scales[field(23, 1)], a_id=ids[0], b_id=ids[1],
    )  # fmt: skip


def factor_columns(rows: int) -> int:
    """TMEM columns that the factors of this many rows occupy."""
    return -(-rows // 32)


def gather_factors(
    cells: np.ndarray, lane: int, column: int, rows: int, first: int, count: int
) -> np.ndarray:
    """The factors in each quarter of the lanes: uint8 (4, rows, count).

    cells: uint32 (128, 512) of tensor memory; first: byte of a cell that the ID selects.
    """
    row = np.arange(rows)
    lanes = lane + 32 * np.arange(4)[:, None] + row[None, :] % 32
    words = np.ascontiguousarray(cells[lanes % 128, column + row[None, :] // 32])
    return words.view(np.uint8).reshape(4, rows, 4)[..., first : first + count]
