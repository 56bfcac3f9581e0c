"""Replaces alloca, stacksave, stackrestore (PTX ISA 9.7.17) by moves of a pointer into a local variable."""

from __future__ import annotations

from dataclasses import replace

from ptxsim.frontend.ast import Function, Imm, Instr, LabelDef, PtxError, Reg, Sym, Var

_BYTES = 16 * 1024  # per thread; CUDA provides 1 KB unless a program asks for more
_STACK, _TOP = "%stack", "%stack.top"
_ALIGNED, _LEAST = 16, 8


def with_stack(function: Function) -> Function:
    """The function without these instructions; itself if it has none."""
    if not any(isinstance(item, Instr) and item.op in _FORMS for item in function.body):
        return function
    first = next(item for item in function.body if isinstance(item, Instr))
    stack = Var(_STACK, "local", "b8", _ALIGNED, _BYTES, _BYTES)
    body: list[Instr | LabelDef] = [replace(_made(first, "mov", Reg(_TOP), Sym(_STACK)), pred=None)]
    for item in function.body:
        body += _FORMS[item.op](item) if isinstance(item, Instr) and item.op in _FORMS else [item]
    regs = {**function.regs, _TOP: "b64"}
    return replace(function, body=body, regs=regs, vars=[*function.vars, stack])


def _alloca(instr: Instr) -> list[Instr]:
    """d = top, rounded up; top = d + size."""
    target, size, *align = instr.operands
    least, top = align[0].bits if align else _LEAST, Reg(_TOP)
    if instr.mods != ("u64",):
        raise PtxError(f"{instr.name} is not modelled: addresses have 64 bits", instr.line, instr.text)
    return [
        _made(instr, "add", top, top, Imm(least - 1, "int")),
        _made(instr, "and", top, top, Imm(-least, "int")),
        _made(instr, "mov", target, top),
        _made(instr, "add", top, top, size),
    ]


def _save(instr: Instr) -> list[Instr]:
    return [_made(instr, "mov", instr.operands[0], Reg(_TOP))]


def _restore(instr: Instr) -> list[Instr]:
    return [_made(instr, "mov", Reg(_TOP), instr.operands[0])]


_FORMS = {"alloca": _alloca, "stacksave": _save, "stackrestore": _restore}


def _made(near: Instr, op: str, *operands) -> Instr:
    """An instruction that replaces another one, with the same guard."""
    return replace(near, op=op, mods=("u64" if op == "add" else "b64",), operands=operands)
