"""wmma.mma (PTX ISA 9.7.14.4.5): D = A * B + C by one warp, on fragments that wmma.load has loaded.

It computes like mma.sync on the same fragments (isa/layouts/wmma.py): sums are exact and rounded once. D of
f16 with C of f32 is rounded to f32 first, as in the SASS of sm_90a. Modifiers .row and .col give the layout
of the matrices in memory; registers hold the same either way. f64 with .rz, .rm or .rp is refused.
"""

from __future__ import annotations

from functools import lru_cache

from ptxsim.isa.layouts.wmma import wmma_fragment
from ptxsim.jit.called import ParameterBlock
from ptxsim.units.mma import Layout, block_of, multiplier, multiply_warp, operand_of, suspects
from ptxsim.units.mma_form import BITS, MmaForm, require_counts, sizes_of
from ptxsim.units.registry import FastForm, unit

WIDE = "m16n16k16 m8n32k16 m32n8k16"
ELEMENT_BITS = BITS | {"f32": 32, "s32": 32}
HALF_REGISTERS = 8  # registers of A or B in f16, for any shape


def registers_for(which: str, shape: tuple[int, int, int], kind: str) -> int:
    """Number of a thread's registers for its fragment (PTX ISA 9.7.14.4.1); 32 bits each, 64 for f64."""
    if which != "c" and kind == "f16":
        return HALF_REGISTERS
    m, n, k = shape
    elements, bits = {"a": m * k, "b": k * n, "c": m * n}[which] // 32, ELEMENT_BITS[kind]
    return elements * bits // max(32, bits)


def decode_form(instr) -> MmaForm:
    """The form of a wmma.mma. If A and B are f16, its modifiers only name the types of D and C."""
    types = [m for m in instr.mods if m in ELEMENT_BITS]
    d, a, b, c = types if len(types) == 4 else (types[0], "f16", "f16", types[1])
    bitwise = next((x for x in ("xor", "and") if x in instr.mods), "")
    return MmaForm(*sizes_of(instr), a, b, c, d, "satfinite" in instr.mods, bitwise)


@lru_cache(maxsize=64)
def _layout(shape: tuple[int, int, int], a: str, b: str) -> Layout:
    (row, along), (depth, column) = wmma_fragment("a", shape, BITS[a]), wmma_fragment("b", shape, BITS[b])
    operands = operand_of(row * shape[2] + along, a), operand_of(depth * shape[1] + column, b)
    return Layout(*operands, *wmma_fragment("c", shape, BITS[a]))


def _fast_wmma(instr, args: tuple, unset) -> ParameterBlock:
    form, shape = decode_form(instr), sizes_of(instr)
    return block_of(form, _layout(shape, form.a, form.b), args, quiet=not suspects(args, unset))


@unit(
    "wmma.mma .sync.aligned.side.side.wide.half.half d, a, b, c",
    "wmma.mma .sync.aligned.side.side.wide.f32.bf16.bf16.f32 d, a, b, c",
    "wmma.mma .sync.aligned.side.side.m16n16k8.f32.tf32.tf32.f32 d, a, b, c",
    "wmma.mma .sync.aligned.side.side.m8n8k4{.rn}.f64.f64.f64.f64 d, a, b, c",
    "wmma.mma .sync.aligned.side.side.wide.s32.s8.s8.s32{.satfinite} d, a, b, c",
    "wmma.mma .sync.aligned.side.side.wide.s32.u8.u8.s32{.satfinite} d, a, b, c",
    "wmma.mma .sync.aligned.row.col.m8n8k32.s32.s4.s4.s32{.satfinite} d, a, b, c",
    "wmma.mma .sync.aligned.row.col.m8n8k32.s32.u4.u4.s32{.satfinite} d, a, b, c",
    "wmma.mma .bits.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 d, a, b, c",
    side="row col",
    wide=WIDE,
    half="f16 f32",
    bits="xor and",
    writes=(0,),
    section="9.7.14.4.5",
    fast=FastForm(_fast_wmma, called=multiply_warp, unheard=True),
)
def wmma(instr):
    form, shape = decode_form(instr), sizes_of(instr)
    parts = (("c", form.d), ("a", form.a), ("b", form.b), ("c", form.c))
    require_counts(instr, [registers_for(which, shape, kind) for which, kind in parts])
    return multiplier(form, _layout(shape, form.a, form.b))
