"""ld, ldu and st (PTX ISA 9.7.9.8 - 9.7.9.12): what their modifiers say; those left over order or hint."""

from __future__ import annotations

from ptxsim.frontend.parser import Instr, PtxError
from ptxsim.isa.operands import TYPE_BITS, type_bits

SPACES = {
    "global": 0,
    "const": 0,
    "param": 0,
    "shared": 1,
    "shared::cta": 1,
    "shared::cluster": 2,
    "local": 3,
}
GENERIC = 4
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_ACCESS_MODS = {
    "weak", "relaxed", "acquire", "release", "volatile", "mmio", "cta", "cluster", "gpu", "sys",
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified", "v2", "v4", "v8", *SPACES,
    "param::entry", "param::func",
}  # fmt: skip


def access_form(instr: Instr) -> tuple[int, bool, int, int]:
    """(bytes of an element, sign-extended?, space, elements) of a load or store; refuses what is unknown."""
    space, vector = GENERIC, 1
    for mod in instr.mods[:-1]:
        if mod.startswith(("L1::", "L2::", "level::")):
            continue
        base = "param" if mod.startswith("param::") else mod
        if mod not in _ACCESS_MODS:
            raise PtxError(f"modifier .{mod} of {instr.op} is not modelled", instr.line, instr.text)
        space = SPACES.get(base, space)
        vector = _VECTORS.get(mod, vector)
    kind = instr.mods[-1]
    if kind not in TYPE_BITS or type_bits(kind) > 64:
        raise PtxError(f"type .{kind} of {instr.op} is not modelled", instr.line, instr.text)
    return type_bits(kind) // 8, kind[0] == "s", space, vector
