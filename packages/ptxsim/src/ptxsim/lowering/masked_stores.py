"""A store of 256 bits may leave out elements, `{x, _, ..}`: their bytes stay as they are (PTX ISA 9.7.9.11).
Each element that it writes becomes a store of its own.
"""

from __future__ import annotations

from dataclasses import replace

from ptxsim.frontend.ast import Function, Instr, Sink, Vec
from ptxsim.isa.memory_access import VECTORS, access_form


def split_masked(function: Function) -> Function:
    """The function without such stores; itself if it has none."""
    if not any(_masked(item) for item in function.body):
        return function
    body: list = []
    for item in function.body:
        body += _split(item) if isinstance(item, Instr) and _masked(item) else [item]
    return replace(function, body=body)


def _masked(item) -> bool:
    wide = (
        isinstance(item, Instr) and item.op == "st" and ("v8" in item.mods or {"v4", "b64"} <= set(item.mods))
    )
    vector = item.operands[-1] if wide else None
    return isinstance(vector, Vec) and any(isinstance(element, Sink) for element in vector.items)


def _split(instr: Instr) -> list[Instr]:
    place, vector = instr.operands
    width = access_form(instr)[0]
    mods = tuple(mod for mod in instr.mods if mod not in VECTORS and not mod.startswith("L2::evict"))
    return [
        replace(instr, mods=mods, operands=(replace(place, offset=place.offset + i * width), element))
        for i, element in enumerate(vector.items)
        if not isinstance(element, Sink)
    ]
