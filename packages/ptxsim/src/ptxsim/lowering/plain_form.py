"""Prepares a function for lowering: inlines calls, makes the stack a variable, splits 128-bit values and
stores that leave out elements.
"""

from __future__ import annotations

from ptxsim.frontend.ast import Function, Module
from ptxsim.frontend.inline_calls import expand
from ptxsim.lowering.masked_stores import split_masked
from ptxsim.lowering.split_b128 import split_wide
from ptxsim.lowering.thread_stack import with_stack


def plain_form(function: Function, module: Module) -> Function:
    """The function in this form. Raises PtxError for what is not modelled."""
    return split_masked(split_wide(with_stack(expand(function, module))))
