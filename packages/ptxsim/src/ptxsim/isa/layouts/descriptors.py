"""Descriptors of tensor-core instructions: their bit fields, and the shared-memory layouts that they
describe.

* matrix descriptors of wgmma (sm_90, PTX ISA 9.7.15.5.1) and tcgen05 (sm_100, PTX ISA 9.7.16.4.1), 64 bits;
* `operand_addresses`: the canonical layouts, (row, k) -> byte address in shared memory;
* the instruction descriptor of tcgen05.mma (PTX ISA 9.7.16.4.2), 32 bits.

Decoders raise ValueError with one line that names the wrong field.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ptxsim.isa.layouts.swizzle import SPAN, Mode, swizzle
from ptxsim.isa.layouts.tables import table

# value of the swizzle field (bits 62-63 on sm_90, 61-63 on sm_100) -> mode
_SWIZZLE_FIELD: dict[str, dict[int, Mode]] = {
    "sm_90": {0: 0, 1: 128, 2: 64, 3: 32},
    "sm_100": {0: 0, 1: "128_atom32", 2: 128, 4: 64, 6: 32},
}


@dataclass(frozen=True)
class MatrixDescriptor:
    """A matrix operand in shared memory; addresses and strides in bytes."""

    start: int  # address of the first element, 16 B aligned, below 256 KB
    leading: int  # leading dimension byte offset (LBO)
    stride: int  # stride dimension byte offset (SBO)
    swizzle: Mode
    base: int = 0  # matrix base offset, 0-7: row of the swizzle pattern at a 1024 B boundary
    absolute: bool = False  # leading is an address, not an offset (sm_103a, K of 48 B)


def bit_field(bits: int, low: int, width: int) -> int:
    return (bits >> low) & ((1 << width) - 1)


def fixed_bits(bits: int) -> int:
    """Bits 46-48. By PTX ISA 9.7.16.5.1 they are 0b001 in every descriptor of tcgen05; chips accept 0b000,
    too, at least with a swizzle.
    """
    return bit_field(bits, 46, 3)


def decode_matrix_descriptor(bits: int, arch: str = "sm_100") -> MatrixDescriptor:
    """Fields of a 64-bit matrix descriptor. arch: "sm_90" (wgmma) or "sm_100" (tcgen05)."""
    field = bit_field(bits, 62, 2) if arch == "sm_90" else bit_field(bits, 61, 3)
    modes = _SWIZZLE_FIELD[arch]
    if field not in modes:
        raise ValueError(f"matrix descriptor 0x{bits:016x}: swizzle field {field} is reserved")
    forgiven = fixed_bits(bits) == 0 and field != 0  # the checks report it
    if arch == "sm_100" and fixed_bits(bits) != 1 and not forgiven:
        raise ValueError(
            f"matrix descriptor 0x{bits:016x}: bits 46-48 must be 0b001, found {fixed_bits(bits):#05b}"
        )
    if arch == "sm_100" and bit_field(bits, 53, 8):
        raise ValueError(f"matrix descriptor 0x{bits:016x}: bits 53-60 must be 0")
    start, leading, stride = (bit_field(bits, low, 14) << 4 for low in (0, 16, 32))
    absolute = arch == "sm_100" and bool(bit_field(bits, 52, 1))
    return MatrixDescriptor(start, leading, stride, modes[field], bit_field(bits, 49, 3), absolute)


def encode_matrix_descriptor(desc: MatrixDescriptor, arch: str = "sm_100") -> int:
    """The 64 bits that decode to `desc`."""
    field = {mode: value for value, mode in _SWIZZLE_FIELD[arch].items()}[desc.swizzle]
    bits = field << (62 if arch == "sm_90" else 61)
    for low, value in ((0, desc.start), (16, desc.leading), (32, desc.stride)):
        if value % 16 or not 0 <= value < 1 << 18:
            raise ValueError(f"{value} is not a multiple of 16 below {1 << 18}")
        bits |= (value >> 4) << low
    fixed = 1 << 46 if arch == "sm_100" else 0
    return bits | fixed | desc.base << 49 | int(desc.absolute) << 52


def operand_addresses(
    desc: MatrixDescriptor, rows: int, depth: int, itemsize: int, mn_major: bool
) -> np.ndarray:
    """The byte address of every element: int64[rows, depth], row = M or N index, column = K index.

    The canonical layouts of PTX ISA 9.7.16.5.1 (the same for wgmma): a row of the swizzle pattern holds
    `span` contiguous bytes along K (K-major) or along M/N (MN-major), and eight rows make one atom. The
    swizzle acts on the final address, so a start address inside an atom (the next K step) needs no special
    case.
    """
    inside = desc.start % 1024  # no pattern is longer
    return _offsets(replace(desc, start=inside), rows, depth, itemsize, mn_major) + (desc.start - inside)


@lru_cache(maxsize=256)
def _offsets(desc: MatrixDescriptor, rows: int, depth: int, itemsize: int, mn_major: bool) -> np.ndarray:
    span = SPAN[desc.swizzle] or 16
    if desc.absolute:
        raise ValueError("matrix descriptor: absolute leading dimension (bit 52) is not modelled")
    if mn_major:
        fast, slow = np.arange(rows)[:, None] * itemsize, np.arange(depth)[None, :]
        atom = 4 if desc.swizzle == "128_atom32" else 8
    else:
        fast, slow = np.arange(depth)[None, :] * itemsize, np.arange(rows)[:, None]
        atom = 8
    if desc.swizzle == "128_atom32" and not mn_major:
        raise ValueError("matrix descriptor: the 128 B swizzle with 32 B atoms is for MN-major operands only")
    # Distance to the next `span` bytes, and to the next atom of 8 (4) rows.
    if not mn_major:
        next_span, next_atom = (desc.leading if desc.swizzle == 0 else span), desc.stride
    elif desc.swizzle == 0:
        next_span, next_atom = desc.stride, desc.leading
    else:
        next_span, next_atom = desc.leading, desc.stride
    linear = fast % span + fast // span * next_span + slow % atom * span + slow // atom * next_atom
    return table(swizzle(desc.start + linear, desc.swizzle, desc.base))[0]


# --- instruction descriptor ---

F8F6F4 = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
_INPUT_TYPES = {
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": F8F6F4,
    "i8": {0: "u8", 1: "s8"},
}
_RESULT_TYPES = {
    "f16": {0: "f16", 1: "f32"},
    "tf32": {1: "f32"},
    "f8f6f4": {0: "f16", 1: "f32"},
    "i8": {2: "s32"},
}
MMA_K = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32}  # depth of one dense tcgen05.mma
# cta_group -> the legal M, and what N is a multiple of, up to 256 (PTX ISA 9.7.16.2.1)
_SHAPES = {1: ((64, 128), 8), 2: ((128, 256), 16)}


@dataclass(frozen=True)
class InstructionDescriptor:
    m: int
    n: int
    k: int  # dense depth of the kind; twice that if sparse
    a_type: str  # "f16", "bf16", "tf32", "e4m3", ..., "u8", "s8"
    b_type: str
    d_type: str  # "f16", "f32", "s32"
    a_mn_major: bool  # "transpose A": M is contiguous
    b_mn_major: bool
    negate_a: bool
    negate_b: bool
    saturate: bool
    sparse: bool
    selector: int = 0  # of a sparse MMA: sub-column of its metadata


def listed(codes: dict[int, str]) -> str:
    """`0 (f16) or 1 (bf16)`: the values of a field of a descriptor that are legal."""
    return " or ".join(f"{code} ({name})" for code, name in codes.items())


def decode_instruction_descriptor(
    bits: int, kind: str = "f16", cta_group: int = 1, ws: bool = False
) -> InstructionDescriptor:
    """Fields of the 32-bit instruction descriptor of tcgen05.mma. kind: "f16", "tf32", "f8f6f4" or "i8"."""
    if kind not in _INPUT_TYPES:
        raise ValueError(f"tcgen05.mma .kind::{kind} is not modelled")
    where = f"instruction descriptor 0x{bits:08x} of .kind::{kind}"
    reserved = bits & (1 << 6 | 1 << 23 | 1 << 29)
    if reserved:
        raise ValueError(f"{where}: reserved bits 0x{reserved:x} are set")
    types = []
    for name, low, width, names in (
        ("A", 7, 3, _INPUT_TYPES[kind]),
        ("B", 10, 3, _INPUT_TYPES[kind]),
        ("D", 4, 2, _RESULT_TYPES[kind]),
    ):
        value = bit_field(bits, low, width)
        if value not in names:
            raise ValueError(f"{where}: matrix {name} has type {value}, expected {listed(names)}")
        types.append(names[value])
    m, n, sparse = bit_field(bits, 24, 5) << 4, bit_field(bits, 17, 6) << 3, bool(bit_field(bits, 2, 1))
    if ws:
        _check_ws(where, m, n)
    else:
        _check_shape(where, m, n, kind, cta_group)
    selector = bit_field(bits, 0, 2) if sparse else 0
    if selector and kind not in ("f16", "tf32"):
        raise ValueError(f"{where}: sparsity selector {selector}, expected 0")
    if selector > 1:
        raise NotImplementedError(f"sparsity selector {selector}")
    a_mn, b_mn, negate_a, negate_b, saturate = (bool(bit_field(bits, low, 1)) for low in (15, 16, 13, 14, 3))
    a_type, b_type, d_type = types
    return InstructionDescriptor(
        m, n, MMA_K[kind] * (2 if sparse else 1), a_type, b_type, d_type,
        a_mn, b_mn, negate_a, negate_b, saturate, sparse, selector,
    )  # fmt: skip


def _check_shape(where: str, m: int, n: int, kind: str, cta_group: int) -> None:
    """Raises ValueError for a shape that does not exist without .ws (PTX ISA 9.7.16.2.1)."""
    rows, step = _SHAPES[cta_group]
    good = n % step == 0
    if kind == "i8":
        step *= 2
        good = n % step == 0 or cta_group == 1 and n in (8, 24)
    wanted = f"N a multiple of {step}, at most 256" if m in rows else f"M from {list(rows)}"
    if not (m in rows and good and 0 < n <= 256):
        raise ValueError(f"{where}, cta_group::{cta_group}: M={m}, N={n}; expected {wanted}")


def _check_ws(where: str, m: int, n: int) -> None:
    """Raises ValueError for a shape that does not exist with .ws (PTX ISA 9.7.16.2.1)."""
    if m not in (32, 64, 128) or n not in (64, 128, 256):
        raise ValueError(f"{where} with .ws: M={m}, N={n}; expected M from 32, 64, 128, N from 64, 128, 256")
