"""A store of 256 bits may leave out elements, `{x, _, ..}`: their bytes stay as they are (PTX ISA 9.7.9.11).
Each element that it writes becomes a store of its own, after a test of the alignment of the whole vector.
"""

from __future__ import annotations

from dataclasses import replace

from ptxsim.frontend.ast import Function, Imm, Instr, Pred, Reg, Sink, Sym, Vec
from ptxsim.frontend.inline_calls import MISALIGNED
from ptxsim.isa.memory_access import VECTORS, access_form

WHOLE = 32  # bytes of such a vector
_REST, _WRONG = Reg("masked.rest"), Reg("masked.wrong")


def split_masked(function: Function) -> Function:
    """The function without such stores; itself if it has none."""
    if not any(_masked(item) for item in function.body):
        return function
    body: list = []
    regs = {**function.regs, _REST.name: "b64", _WRONG.name: "pred"}
    for item in function.body:
        body += [*_test(item), *_split(item)] if isinstance(item, Instr) and _masked(item) else [item]
    return replace(function, body=body, regs=regs)


def _masked(item) -> bool:
    wide = (
        isinstance(item, Instr) and item.op == "st" and ("v8" in item.mods or {"v4", "b64"} <= set(item.mods))
    )
    vector = item.operands[-1] if wide else None
    return isinstance(vector, Vec) and any(isinstance(element, Sink) for element in vector.items)


def _test(instr: Instr) -> list[Instr]:
    """A call that reports an address, if in a register, which is not a multiple of 32 bytes."""
    place = instr.operands[0]
    if not isinstance(place.base, Reg):
        return []
    right = Imm(-place.offset % WHOLE, "int")
    guard = () if instr.pred is None else (instr.pred if instr.pred.negated else instr.pred.reg,)
    operands = (_WRONG, _REST, right, *guard)
    return [
        replace(
            instr, pred=None, op="and", mods=("b64",), operands=(_REST, place.base, Imm(WHOLE - 1, "int"))
        ),
        replace(instr, pred=None, op="setp", mods=("ne", *("and",) * len(guard), "u64"), operands=operands),
        replace(instr, pred=Pred(_WRONG, False), op="call", mods=(), operands=(Sym(MISALIGNED),)),
    ]


def _split(instr: Instr) -> list[Instr]:
    place, vector = instr.operands
    width = access_form(instr)[0]
    mods = tuple(mod for mod in instr.mods if mod not in VECTORS and not mod.startswith("L2::evict"))
    return [
        replace(instr, mods=mods, operands=(replace(place, offset=place.offset + i * width), element))
        for i, element in enumerate(vector.items)
        if not isinstance(element, Sink)
    ]
