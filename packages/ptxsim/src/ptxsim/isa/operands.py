"""Operands: widths of types, bit patterns of constants, slots with a special use."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ptxsim.frontend.ast import Imm

# the value of a register that has not been written: a NaN as f16, bf16, f32 and f64, and an unlikely integer
UNSET = 0xFFFB_7FFB_FFFB_7FFB
SINK, CARRY = 0, 1  # the slot that `_` names, and the condition code register CC.CF (PTX ISA 9.7.2)

TYPE_BITS = {
    **{f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)},
    **{"f16": 16, "bf16": 16, "f32": 32, "tf32": 32, "f64": 64, "b128": 128, "pred": 1},
    **{"f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32, "f32x2": 64},
}


def type_bits(kind: str) -> int:
    """The width of a PTX type in bits; packed formats of 8-bit and smaller elements count as 32."""
    return TYPE_BITS.get(kind, 32)


def constant_bits(imm: Imm, kind: str) -> int:
    """The 64-bit pattern of an immediate as an operand of type `kind`."""
    if imm.kind == "int":
        return imm.bits & ((1 << max(type_bits(kind), 1)) - 1)
    if imm.kind == "f64" and type_bits(kind) == 32:
        value = struct.unpack("<d", struct.pack("<Q", imm.bits))[0]
        return struct.unpack("<I", struct.pack("<f", value))[0]
    if imm.kind == "f32" and kind == "f64":
        value = struct.unpack("<f", struct.pack("<I", imm.bits))[0]
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    return imm.bits


@dataclass(frozen=True)
class MemArg:
    """An address operand of a unit instruction: slot + offset, and the other operands in the brackets."""

    slot: int
    offset: int
    parts: tuple = ()


@dataclass(frozen=True)
class PredArg:
    """A predicate operand of a unit instruction, coded as 2 * index + negated."""

    code: int
