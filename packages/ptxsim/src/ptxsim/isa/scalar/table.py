"""The table of scalar instructions: every register-to-register operation of PTX, from its spelling to its
meaning.

`resolve(instr)` gives the `ScalarOp` of an instruction, `FAMILIES` the whole table (for documentation and
tests). An instruction is legal if any target of PTX ISA 9.0 accepts it; the module's own target is not
checked. Values are computed by the numba text in `ScalarOp.expr`, with the helpers of `ptxsim.isa.mathlib`.
"""

from __future__ import annotations

import re
from functools import cache

from ptxsim.frontend.ast import Instr, Pair, PtxError, Vec
from ptxsim.isa.scalar import compare, convert, floating, half, integer, video
from ptxsim.isa.scalar.forms import Family, Form, Mods, ScalarOp

FAMILIES: tuple[Family, ...] = (
    *integer.FAMILIES,
    *floating.FAMILIES,
    *half.FAMILIES,
    *compare.FAMILIES,
    *convert.FAMILIES,
    *video.FAMILIES,
)
OPCODES = frozenset(family.name for family in FAMILIES)


_TYPE = re.compile(r"pred|(?:[busf]|bf|tf)\d+(?:x\d)?|u?e\dm\d(?:x\d)?")
NOT_MODELLED = {
    ("cvt", "rs"): "stochastic rounding: PTX shows how the random bits are used in pictures only",
    ("fma", "oob"): "PTX does not give the bits of the out-of-bounds NaN",
}


_FIRST = {  # modifiers that must be first
    **dict.fromkeys(("mul", "mul24", "mad", "mad24", "madc", "dp2a"), {"lo", "hi", "wide"}),
    **{"shf": {"l", "r"}, "div": {"full"}},
}


def ordered(spelling: tuple[str, ...]) -> tuple[str, ...]:
    """The types in their order, then the other modifiers, which ptxas accepts anywhere (`setp.s32.lt`)."""
    types = tuple(mod for mod in spelling if _TYPE.fullmatch(mod))
    return types + tuple(sorted(mod for mod in spelling if not _TYPE.fullmatch(mod)))


@cache
def spellings(opcode: str) -> dict[tuple[str, ...], list[tuple[Form, Mods]]]:
    """All legal modifier lists of an opcode; forms that differ only in their operands share one list."""
    table: dict[tuple[str, ...], list[tuple[Form, Mods]]] = {}
    for family in FAMILIES:
        if family.name == opcode:
            for form in family.forms:
                for spelling, mods in form.expand():
                    table.setdefault(ordered(spelling), []).append((form, mods))
    return table


def resolve(instr: Instr) -> ScalarOp | None:
    """The operation of an instruction; None if its opcode is not in the table.

    A second destination after a bar (`p|q`) makes a separate form. Raises PtxError for a combination of
    modifiers or a number of operands that the opcode does not have.
    """
    if instr.op not in OPCODES:
        return None
    pair = bool(instr.operands) and isinstance(instr.operands[0], Pair)
    ops = _lookup(instr.op, instr.mods + ("|",) * pair)
    if not ops:
        raise PtxError(_why_not(instr, pair), instr.line, instr.text)
    count = sum(len(one.items) if isinstance(one, Vec) else 1 for one in instr.operands) + pair
    for op in ops:
        if count == len(op.dst) + len(op.src):
            return op
    wanted = " or ".join(str(len(op.dst) + len(op.src)) for op in ops)
    raise PtxError(f"{instr.name} takes {wanted} operands, not {count}", instr.line, instr.text)


@cache
def _lookup(opcode: str, spelling: tuple[str, ...]) -> tuple[ScalarOp, ...]:
    if _FIRST.get(opcode, set()) & set(spelling[1:]):
        return ()
    return tuple(form.build(mods, HOT) for form, mods in spellings(opcode).get(ordered(spelling), ()))


def _why_not(instr: Instr, pair: bool) -> str:
    """What is wrong with the modifiers of an instruction."""
    table = spellings(instr.op)
    if pair and ordered(instr.mods) in table:
        return f"{instr.name} has one destination"
    if not pair and ordered((*instr.mods, "|")) in table:
        return f"{instr.name} has two destinations, written d|p"
    for mod in instr.mods:
        if (instr.op, mod) in NOT_MODELLED:
            return f"{instr.op}.{mod} is not modelled ({NOT_MODELLED[instr.op, mod]})"
    known = {mod for spelling in table for mod in spelling}
    twice = [mod for mod in instr.mods if instr.mods.count(mod) > 1 and not _TYPE.fullmatch(mod)]
    if twice:
        return f"modifier .{twice[0]} appears twice"
    unknown = [mod for mod in instr.mods if mod not in known]
    if unknown:
        return f"{instr.op} has no modifier .{unknown[0]} (PTX ISA {_section(instr.op)})"
    return f"{instr.name} is not a legal combination of modifiers (PTX ISA {_section(instr.op)}, {instr.op})"


def _section(opcode: str) -> str:
    return ", ".join(dict.fromkeys(family.section for family in FAMILIES if family.name == opcode))


# Keys of the operations that compiled kernels use most: about 110, as each makes the main loop compile longer
HOT_KEYS = """
add.u32 add.u64 sub.u32 sub.u64 mul.lo.u32 mul.lo.u64 mul.wide.u32 mul.wide.s32 mul.wide.u16 mul.hi.u32
mad.lo.u32 mad.lo.u64 mad.wide.u32 mad.wide.s32 div.u32 div.s32 rem.u32 rem.s32 min.u32 min.s32 max.u32
max.s32 abs.s32 neg.s32 and.b16 and.b32 and.b64 or.b16 or.b32 or.b64 xor.b32 xor.b64 not.b32 and.pred
or.pred xor.pred not.pred bfe.u32 bfi.b32 shl.b32 shl.b64 shr.u16 shr.u32 shr.s32 shr.u64 shr.s64
shf.l.wrap.b32 shf.r.wrap.b32 lop3.b32 prmt.b32 popc.b32 brev.b32 setp.eq.u16 setp.ne.u16 setp.eq.u32
setp.ne.u32 setp.lt.u32 setp.le.u32 setp.gt.u32 setp.ge.u32 setp.lt.s32 setp.le.s32 setp.gt.s32 setp.ge.s32
setp.eq.u64 setp.ne.u64 setp.lt.u64 setp.gt.u64 setp.lt.s64 setp.gt.s64 setp.lt.f32 setp.gt.f32 selp.b16
selp.b32 selp.b64 mov.pred mov.b16 mov.b32 mov.b64 cvt.u16.u32 cvt.u32.u64 cvt.u64.u32 cvt.u32.u16
cvt.u16.u64 cvt.s64.s32 cvt.s32.s16 cvt.rn.f32.s32 cvt.rn.f32.u32 cvt.rzi.s32.f32 cvt.f32.f16 cvt.f32.bf16
cvt.rn.f16.f32 cvt.rn.f16x2.f32 cvt.rn.bf16x2.f32 cvt.rn.bf16.f32 add.f32 sub.f32 mul.f32 fma.f32 min.f32
max.f32 neg.f32 abs.f32 ex2.approx.ftz.f32 add.f16x2 mul.f16x2 fma.f16x2
"""
HOT = frozenset(HOT_KEYS.split())
