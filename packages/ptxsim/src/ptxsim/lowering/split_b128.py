"""Splits 128-bit registers (PTX ISA 5.2.4) into two 64-bit ones, low half first, before lowering."""

from __future__ import annotations

from dataclasses import replace

from ptxsim.frontend.ast import Function, Instr, Mem, PtxError, Reg, Vec

_AS_PAIR = ("atom", "clusterlaunchcontrol")  # these accept a vector of the two halves


def split_wide(function: Function) -> Function:
    """The function without .b128 registers; itself if it has none. PtxError for what is not modelled."""
    wide = {name for name, kind in function.regs.items() if kind == "b128"}
    if not wide:
        return function
    out = replace(function, body=[], regs={n: k for n, k in function.regs.items() if n not in wide})
    out.regs.update({half.name: "b64" for name in wide for half in _halves(name).items})
    for item in function.body:
        if isinstance(item, Instr) and any(_names(o) & wide for o in item.operands):
            out.body += _split(item, wide)
        else:
            out.body.append(item)
    return out


def _halves(name: str) -> Vec:
    return Vec((Reg(f"{name}.lo"), Reg(f"{name}.hi")))


def _names(operand) -> set[str]:
    if isinstance(operand, Reg):
        return {operand.name}
    return {i.name for i in operand.items if isinstance(i, Reg)} if isinstance(operand, Vec) else set()


def _in_two(vector: Vec) -> tuple:
    """The lower and the upper half of a vector of two or four."""
    low, high = vector.items[: len(vector.items) // 2], vector.items[len(vector.items) // 2 :]
    return (low[0], high[0]) if len(low) == 1 else (Vec(low), Vec(high))


def _split(instr: Instr, wide: set[str]) -> list[Instr]:
    def halves(o):
        return _halves(o.name) if isinstance(o, Reg) and o.name in wide else o

    operands = tuple(halves(o) for o in instr.operands)
    if instr.op in ("ld", "ldu", "st") and instr.mods[-1] == "b128" and not {"v2", "v4"} & set(instr.mods):
        return [replace(instr, mods=(*instr.mods[:-1], "v2", "b64"), operands=operands)]
    vectors = [o for o in operands if isinstance(o, Vec) and len(o.items) == 2]
    if instr.op == "mov" and len(vectors) == len(operands):
        pairs = zip(vectors[0].items, vectors[1].items, strict=True)
        return [replace(instr, mods=("b64",), operands=pair) for pair in pairs]
    if instr.op == "mov" and sorted(len(o.items) for o in operands if isinstance(o, Vec)) == [2, 4]:
        parts = [_in_two(o) for o in operands if isinstance(o, Vec)]
        return [replace(instr, mods=("b64",), operands=pair) for pair in zip(*parts, strict=True)]
    if instr.op in _AS_PAIR and all(isinstance(o, Mem | Vec | Reg) for o in operands):
        return [replace(instr, operands=operands)]
    raise PtxError(f"a 128-bit operand of {instr.op} is not modelled", instr.line, instr.text)
