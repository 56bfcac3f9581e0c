"""multimem (PTX ISA 9.7.9.14): one address for the memories of several GPUs. Here that is one GPU's memory,
so a load that reduces is a load, and a store or a reduction goes there. Fences between such addresses and
others (`fence.proxy.alias`) are not asked for.
"""

from __future__ import annotations

from dataclasses import replace

from ptxsim.frontend.ast import Instr
from ptxsim.isa.memory_access import VECTORS
from ptxsim.isa.operands import type_bits

_KEPT = {"relaxed", "acquire", "release", "cta", "cluster", "gpu", "sys", *VECTORS}
_BYTES = {"e4m3": 8, "e5m2": 8}
_HALVES = ("f16", "bf16", "f16x2", "bf16x2")


def on_one_gpu(instr: Instr) -> Instr:
    """The instruction of one GPU for a multimem instruction; others as they are."""
    if instr.op != "multimem" or len(instr.mods) < 2:
        return instr
    name, *mods = instr.mods
    kind, ordered = mods[-1], tuple(mod for mod in mods if mod in _KEPT)
    if name == "cp":
        return replace(instr, op="cp", mods=tuple(mods))
    if name == "red":
        operation = next(mod for mod in reversed(mods[:-1]) if mod not in _KEPT)
        rounding = ("noftz",) if kind in _HALVES else ()
        return replace(instr, op="red", mods=("global", *ordered, operation, *rounding, kind))
    op = {"ld_reduce": "ld", "st": "st"}.get(name)
    bits = _BYTES.get(kind) or type_bits(kind)
    return replace(instr, op=op, mods=("global", *ordered, f"b{bits}")) if op else instr
