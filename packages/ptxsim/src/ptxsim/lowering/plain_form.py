"""A function as lowering reads it: its calls inlined, its stack a local variable, no 128-bit values."""

from __future__ import annotations

from ptxsim.frontend.ast import Function, Module
from ptxsim.frontend.inline_calls import expand
from ptxsim.lowering.split_b128 import split_wide
from ptxsim.lowering.thread_stack import with_stack


def plain_form(function: Function, module: Module) -> Function:
    """PtxError names what is not modelled."""
    return split_wide(with_stack(expand(function, module)))
