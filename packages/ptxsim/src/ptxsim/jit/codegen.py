"""Compiled code for scalar operations: the main loop contains the hot ones; others are compiled on demand.

Both are generated from `ScalarOp.expr`, written to the cache directory under the hash of their content, and
imported from there; their machine code is kept in the same folder.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptxsim.isa.operands import type_bits
from ptxsim.isa.scalar import address
from ptxsim.isa.scalar import table as scalar
from ptxsim.isa.scalar.forms import ScalarOp
from ptxsim.jit.bytecode import FIRST_SCALAR
from ptxsim.jit.code_cache import import_generated, remembered
from ptxsim.jit.compiled import code_address, digest_of_module
from ptxsim.jit.simd_scalar import vector_operation

_TABLE = ("isa/scalar/*.py",)  # sources of the hot operations; expanding them takes 0.1 s
_TEMPLATE = Path(__file__).with_name("loop_template.py")
GROUP = 24  # operations in one compiled function

_MASKS = {8: "M8", 16: "M16", 32: "M32"}


@functools.cache
def hot_operations() -> tuple[ScalarOp, ...]:
    """The scalar operations of the main loop, in the order of their numbers."""
    found: dict[str, ScalarOp] = {op.key: op for op in address.hot_operations()}
    for family in scalar.FAMILIES:
        for form in family.forms:
            for _, mods in form.expand():
                op = form.build(mods, scalar.HOT)
                if op.hot:
                    found.setdefault(op.key, op)
    return tuple(found[key] for key in sorted(found, key=lambda key: (not _vectorises(found[key]), key)))


@functools.cache
def hot_numbers() -> dict[str, int]:
    """Key of a hot operation -> its number in the opcode column."""
    return remembered(
        "numbers", _TABLE, lambda: {op.key: FIRST_SCALAR + i for i, op in enumerate(hot_operations())}
    )


@dataclass(frozen=True)
class FastCall:
    """Compiled functions of a unit instruction for the main loop (`FastForm` in units/registry.py)."""

    number: int  # in the UNIT_FORM column
    module: str
    each: str  # name, "" for none
    together: str
    unheard: bool


@functools.cache
def main_loop(fast: tuple[FastCall, ...] = ()) -> Callable:
    """The compiled `run` of loop_template.py with all hot operations and the units' fast forms inserted."""
    text = remembered("loop", _TABLE, lambda: _loop_text(fast), key=repr(fast))
    modules = map(importlib.import_module, sorted({call.module for call in fast}))
    return import_generated(text, "".join(map(digest_of_module, modules)), slow=True).run


def _loop_text(fast: tuple[FastCall, ...]) -> str:
    template = _TEMPLATE.read_text()
    functions, dispatch, loops = [], [], []
    for op in hot_operations():
        number = hot_numbers()[op.key]
        if _vectorises(op):
            functions.append(
                f"vector_{number} = vector_operation({op.dst}, {op.src}, {op.expr!r})  # {op.key}\n"
            )
            dispatch.append(
                f"        elif op == {number}:\n            vector_{number}(row, m, registers, predicates)"
            )
        else:
            loops.append(op)
    for start in range(0, len(loops), GROUP):
        group = loops[start : start + GROUP]
        functions.append(_group(f"scalar_{start}", group))
        limit = hot_numbers()[group[-1].key] + 1
        dispatch.append(
            f"        elif op < {limit}:\n            scalar_{start}(op, row, m, registers, predicates)"
        )
    names = [(call.module, name) for call in fast for name in (call.each, call.together) if name]
    functions[:0] = [f"from {module} import {name}" for module, name in names]
    text = template.replace("# {{functions}}", "\n".join(functions))
    text = text.replace("    # {{fast: each}}", _each(fast))
    text = text.replace("    # {{fast: together}}", _together(fast))
    return text.replace("        # {{scalar}}", "\n".join(dispatch).replace("elif", "if", 1))


def _each(fast: tuple[FastCall, ...]) -> str:
    call = "    if kind == {} and not {}:\n        done = {}(c, m, registers, predicates, rank, control)"
    heard = {True: "in_place", False: "observed"}
    return "\n".join(call.format(form.number, heard[form.unheard], form.each) for form in fast if form.each)


def _together(fast: tuple[FastCall, ...]) -> str:
    forms = (form for form in fast if form.together)
    return "\n".join(f"    moved |= {form.together}(control, {form.number})" for form in forms)


def _vectorises(op: ScalarOp) -> bool:
    return not op.carry and vector_operation(op.dst, op.src, op.expr) is not None


def _group(name: str, operations: Sequence[ScalarOp]) -> str:
    """Source of one function for a few operations. Groups are small, because numba's compile time grows
    faster than the size of a function.
    """
    lines = ["@inner", f"def {name}(op, row, m, registers, predicates):"]
    for i, op in enumerate(operations):
        lines.append(f"    {'elif' if i else 'if'} op == {hot_numbers()[op.key]}:  # {op.key}")
        lines += ["        " + line for line in operation_lines(op)]
    return "\n".join(lines) + "\n"


_COLD_HEAD = """import numpy as np
from numba import types

from ptxsim.isa.mathlib.all import *
from ptxsim.isa.address_map import *
from ptxsim.jit.bytecode import *
from ptxsim.isa.mathlib.inner import WHOLE
from ptxsim.jit.compiled import generated
from ptxsim.jit.intrinsics import *
from ptxsim.jit.simd_scalar import vector_operation

"""
_COLD_TYPES = "(types.uint64, types.int64, types.uint64, types.uint64)"


@functools.lru_cache(maxsize=512)
def cold_operation(op: ScalarOp) -> Callable:
    """`cold(row, m, registers, predicates)` for one operation, with the lane loop; compiled on first use."""
    lines = [
        f"@generated({_COLD_TYPES}, pipeline_class=WHOLE)",
        f"def cold(row, m, registers, predicates):  # {op.key}",
    ]
    return import_generated(
        _COLD_HEAD + "\n".join(lines + ["    " + line for line in operation_lines(op)]) + "\n"
    ).cold


def cold_address(op: ScalarOp) -> int:
    """The address of the machine code of a cold operation, for `call_operation`."""
    return code_address(cold_operation(op))


def operation_lines(op: ScalarOp) -> list[str]:
    """Numba statements for one operation: operands are in the row at address `row`, lanes in mask `m`."""
    values = "abcdefgh"
    lines, loads = [], []
    for i, kind in enumerate(op.src):
        column = f"column(row, SRC{i})"
        if kind == "pred":
            lines.append(f"s{i} = mask_of(predicates, {column})")
            loads.append(f"{values[i]} = ((s{i} >> l) & 1) != 0")
        else:
            lines.append(f"s{i} = {column}")
            loads.append(f"{values[i]} = {_read(kind, f'lane_value(registers, s{i}, l)')}")
    if op.carry in ("in", "both"):
        lines.append(f"sc = column(row, SRC{len(op.src)})")
        loads.append("cc = lane_value(registers, sc, l)")
    results = list(op.dst) + (["u64"] if op.carry in ("out", "both") else [])
    lines += [f"d{i} = column(row, DST{i})" for i in range(len(results))]
    lines += [f"r{i} = 0" for i, kind in enumerate(results) if kind == "pred"]
    body = [*loads, f"{', '.join(f'v{i}' for i in range(len(results)))} = {op.expr}"]
    for i, kind in enumerate(results):
        value = f"r{i} |= np.int64(v{i}) << l" if kind == "pred" else ""
        body.append(value or f"set_lane_value(registers, d{i}, l, {_write(kind, f'v{i}')})")
    lines += ["for l in range(32):", "    if (m >> l) & 1:", *("        " + line for line in body)]
    lines += [f"set_mask(predicates, d{i}, m, r{i})" for i, kind in enumerate(results) if kind == "pred"]
    return lines


def _read(kind: str, value: str) -> str:
    bits = type_bits(kind)
    if kind == "f32":
        return f"as_f32({value})"
    if kind == "f64":
        return f"as_f64({value})"
    if kind[0] == "s" and "x" not in kind:
        return f"np.int64({value})" if bits == 64 else f"np.int64(np.int{bits}({value}))"
    return value if bits == 64 else f"({value} & {_MASKS[bits]})"


def _write(kind: str, value: str) -> str:
    bits = type_bits(kind)
    if kind == "f32":
        return f"f32_result(np.float32({value}))"
    if kind == "f64":
        return f"f64_bits(np.float64({value}))"
    return f"np.uint64({value})" if bits == 64 else f"np.uint64({value}) & {_MASKS[bits]}"
