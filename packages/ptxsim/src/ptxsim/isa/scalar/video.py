"""SIMD video instructions: the same operation on two or four parts of a register (PTX ISA 9.7.18).

Selections and masks of parts (`a.b7654`, `d.b10`) are not modelled, only all parts in their order, to which
nvcc compiles CUDA's SIMD intrinsics. Without a mask, c matters only if .add adds the parts to it.
"""

from __future__ import annotations

from ptxsim.isa.scalar.forms import Form, Mods, families, form

OPERATIONS = ("add", "sub", "avrg", "absdiff", "min", "max")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_TYPES = {"dtype": "u32 s32", "atype": "u32 s32", "btype": "u32 s32"}


def _expr(operation: int, parts: int):
    def build(mods: Mods) -> str:
        signs = ", ".join(str(mods.get(name, "u32") == "s32") for name in ("atype", "btype", "dtype"))
        how = f"{bool(mods.get('sat'))}, {bool(mods.get('add'))}"
        return f"video(a, b, c, {operation}, {32 // parts}, {signs}, {how})"

    return build


def _compares(parts: int):
    def build(mods: Mods) -> str:
        number = len(OPERATIONS) + COMPARISONS.index(mods["cmp"])
        return _expr(number, parts)(mods)

    return build


def _forms(parts: int) -> tuple[Form, ...]:
    """All forms for this number of parts. `.sat` clamps parts to their width; `.add` adds them all to c."""
    three = "b32 b32 b32"
    return (
        *(
            form(f"v{name}{parts}.dtype.atype.btype{end}", "b32", three, _expr(at, parts), **_TYPES)
            for at, name in enumerate(OPERATIONS)
            for end in ("{.sat}", ".add")
        ),
        form(
            f"vset{parts}.atype.btype.cmp{{.add}}", "b32", three, _compares(parts),
            cmp=" ".join(COMPARISONS), atype="u32 s32", btype="u32 s32",
        ),
    )  # fmt: skip


FAMILIES = families("9.7.18", (*_forms(2), *_forms(4)))
