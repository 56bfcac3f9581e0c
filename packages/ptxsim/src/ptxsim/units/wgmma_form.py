"""Decodes the modifiers and immediates of wgmma.mma_async (PTX ISA 9.7.15.2, 9.7.15.5.2, 9.7.15.6.4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ptxsim.isa.number_formats import DECODERS
from ptxsim.units.registry import refuse
from ptxsim.units.sparse_a import Sparse, decode_sparse

_FP8, _INT8 = ("e4m3", "e5m2"), ("s8", "u8")
# types of A and B -> (K, types of D, number of immediates after scale-d with A and B in shared memory)
_KINDS = {
    ("f16",): (16, ("f16", "f32"), 4),
    ("bf16",): (16, ("f32",), 4),
    ("tf32",): (8, ("f32",), 2),
    _FP8: (32, ("f16", "f32"), 2),
    _INT8: (32, ("s32",), 0),
    ("b1",): (256, ("s32",), 0),
}
_INT_N = {8, 24, *range(16, 257, 16)}  # PTX ISA 9.7.15.2: N of the integer kinds
_OPERATION = "wgmma.mma_async .sync.aligned.shape"
_OPERANDS = "d, a, b, scale{, sign}{, sign}{, trans}{, trans}"
_DENSE = (
    f"{_OPERATION}.d.f16.f16 {_OPERANDS}",
    f"{_OPERATION}.f32.wide.wide {_OPERANDS}",
    f"{_OPERATION}.d.eight.eight {_OPERANDS}",
    f"{_OPERATION}{{.satfinite}}.s32.int.int {_OPERANDS}",
    f"{_OPERATION}.s32.b1.b1.and.popc d, a, b, scale",
)
BOXES = (
    *_DENSE,
    *(box.replace(" ", ".sp ", 1).replace("a, b,", "a, b, e, f,") for box in _DENSE[:4]),
)
SETS: dict[str, Any] = {
    "shape": " ".join(f"m64n{n}k{k}" for n in range(8, 257, 8) for k in (8, 16, 32, 64, 256)),
    "d": "f16 f32",
    "wide": "bf16 tf32",
    "eight": "e4m3 e5m2",
    "int": "s8 u8",
}


@dataclass(frozen=True)
class WgmmaForm:
    """The decoded modifiers and immediates."""

    n: int
    k: int
    d: str
    a: str
    b: str
    in_registers: bool  # whether A is in registers
    saturate: bool
    negate_a: bool
    negate_b: bool
    a_mn: bool  # A is M-major in shared memory ("transposed")
    b_mn: bool
    sparse: Sparse | None = None

    @property
    def scale(self) -> int:
        """Number of the operand scale-d."""
        return 5 if self.sparse else 3

    @property
    def registers(self) -> int:
        """Registers of D per thread."""
        return self.n // (4 if self.d == "f16" else 2)


def decode_form(instr) -> WgmmaForm:
    """The form of a wgmma.mma_async; raises PtxError for one that does not exist or is not modelled."""
    shape = next(filter(None, (re.fullmatch(r"m64n(\d+)k(\d+)", m) for m in instr.mods)), None)
    types = [m for m in instr.mods if m in DECODERS or m in ("f32", "s32", "b1")]
    family = next((f for f in _KINDS if len(types) == 3 and types[1] in f and types[2] in f), None)
    if shape is None or family is None:
        raise refuse(instr, f"{instr.name} is not a form of wgmma.mma_async that is modelled")
    n, k = int(shape[1]), int(shape[2])
    depth, results, immediates = _KINDS[family]
    is_sparse = "sp" in instr.mods
    depth <<= is_sparse
    good_n = n in _INT_N if results == ("s32",) else n % 8 == 0 and 8 <= n <= 256
    if k != depth or types[0] not in results or not good_n:
        raise refuse(instr, f"{instr.name}: no such shape or type of D (PTX ISA 9.7.15.2)")
    in_registers = hasattr(instr.operands[1], "items")
    scale = 3 + 2 * is_sparse  # number of the operand scale-d
    signs, trans = _immediates(instr, scale, immediates - (in_registers and immediates == 4))
    a_mn, b_mn = (False, *trans) if in_registers and trans else (trans or (False, False))
    d_type, a_type, b_type = types
    a_bits = 256 // depth << is_sparse
    form = WgmmaForm(
        n, k, d_type, a_type, b_type, in_registers,
        "satfinite" in instr.mods, -1 in signs[:1], -1 in signs[1:], a_mn, b_mn,
        decode_sparse(instr, k, a_bits, instr.operands[4]) if is_sparse else None,
    )  # fmt: skip
    found = len(getattr(instr.operands[0], "items", (0,)))
    if found != form.registers or (in_registers and len(instr.operands[1].items) != 4):
        raise refuse(instr, f"D takes {form.registers} registers (found {found}), A in registers 4")
    return form


def _immediates(instr, scale: int, count: int) -> tuple[list[int], tuple[bool, ...]]:
    """(signs of A and B, transpositions), from the immediates after scale-d."""
    operands = instr.operands[scale:]
    values: list[Any] = [getattr(o, "bits", None) for o in operands[1:]]
    if len(operands) != 1 + count:
        raise refuse(
            instr, f"{instr.name} takes scale-d and {count} immediates here, not {len(operands)} operands"
        )
    signs, trans = values[:2], values[2:]
    if any(v not in (1, -1) for v in signs) or any(v not in (0, 1) for v in trans):
        raise refuse(instr, "imm-scale is 1 or -1, imm-trans 0 or 1")
    return signs, tuple(bool(v) for v in trans)
