"""Prepares a function for lowering: inlines calls, makes the stack a variable, splits 128-bit values and
stores that leave out elements, and writes multimem and guarded brx.idx in other instructions.
"""

from __future__ import annotations

from dataclasses import replace

from ptxsim.frontend.ast import Function, Instr, Label, LabelDef, Module
from ptxsim.frontend.inline_calls import expand
from ptxsim.lowering.masked_stores import split_masked
from ptxsim.lowering.multimem import on_one_gpu
from ptxsim.lowering.split_b128 import split_wide
from ptxsim.lowering.thread_stack import with_stack


def plain_form(function: Function, module: Module) -> Function:
    """The function in this form. Raises PtxError for what is not modelled."""
    return split_masked(split_wide(with_stack(_known(expand(function, module)))))


def _known(function: Function) -> Function:
    """The function without multimem instructions and without guards of brx.idx, which become branches."""
    body: list[Instr | LabelDef] = []
    for number, item in enumerate(function.body):
        item = on_one_gpu(item) if isinstance(item, Instr) else item
        if isinstance(item, Instr) and item.op == "brx" and item.pred is not None:
            past, unless = f"brx.past{number}", replace(item.pred, negated=not item.pred.negated)
            branch = replace(item, pred=unless, op="bra", mods=(), operands=(Label(past),))
            body += [branch, replace(item, pred=None), LabelDef(past, item.line)]
        else:
            body.append(item)
    return replace(function, body=body)
