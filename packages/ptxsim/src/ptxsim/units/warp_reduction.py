"""redux.sync: reduces the values of a warp's lanes to one number (PTX ISA 9.7.13.12)."""

from __future__ import annotations

import numpy as np

from ptxsim.isa.mathlib.floating import CANONICAL32, INFINITY32, MAGNITUDE32
from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import M32, ZERO
from ptxsim.jit import bytecode
from ptxsim.jit.called import ParameterBlock, called
from ptxsim.jit.compiled import compiled
from ptxsim.jit.host import address_in_host
from ptxsim.jit.intrinsics import column, lane_value, set_lane_value
from ptxsim.jit.loop_batch import same_in_all
from ptxsim.jit.loop_memory import word
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.atomic_values import FLOAT, MIN, OPERATIONS, SIGNED, UNSIGNED, integer
from ptxsim.units.registry import FastForm, unit
from ptxsim.units.warp import together

_KINDS = {"s32": SIGNED, "f32": FLOAT}
OPERATION, KIND, ABSOLUTE, KEEPS_NAN, TARGET, SOURCE, MEMBERS = range(7)


@inner
def _ordered(bits):
    """An int64 in the same order as the float32 of these bits; -0 is less than +0."""
    x = np.int64(np.int32(np.uint32(bits)))
    return x ^ np.int64(0x7FFFFFFF) if x < 0 else x


@inner
def _joined(operation, kind, a, b):
    if kind != FLOAT:
        return integer(operation, kind == SIGNED, 32, a, b, ZERO)
    return a if (_ordered(a) < _ordered(b)) == (operation == MIN) else b


@inner
def reduced(block, registers, slot, lanes):
    """The reduction of a slot over some lanes. NaNs are ignored unless KEEPS_NAN is set or all are NaNs."""
    operation, kind, first, result = word(block, OPERATION), word(block, KIND), True, CANONICAL32
    for l in range(32):
        if not (lanes >> l) & 1:
            continue
        bits = lane_value(registers, slot, l) & M32
        if kind == FLOAT:
            bits = bits & MAGNITUDE32 if word(block, ABSOLUTE) else bits
            if bits & MAGNITUDE32 > INFINITY32:
                if word(block, KEEPS_NAN):
                    return CANONICAL32
                continue
        result, first = bits if first else _joined(operation, kind, result, bits), False
    return result


@called
def reduce_warp(row, m, warp, registers, predicates, control):
    """redux.sync of a whole warp."""
    block = column(row, bytecode.CALLED_BLOCK)
    target, members = word(block, TARGET), word(block, MEMBERS)
    every = lane_value(registers, members, 0) & M32 == M32 and same_in_all(registers, members, bytecode.FULL)
    if m != bytecode.FULL or not every:
        return 0
    result = reduced(block, registers, word(block, SOURCE), m)
    for l in range(32 if target >= 0 else 0):
        set_lane_value(registers, target, l, result)
    return 1


@compiled()
def reduce_now(block, values, lanes):
    return reduced(block, np.uint64(values), 0, lanes)


def _block(instr, target: int = 0, source: int = 0, members: int = 0) -> ParameterBlock:
    mods = instr.mods
    operation = next(OPERATIONS.index(m) for m in mods if m in OPERATIONS)
    flags = "abs" in mods, "NaN" in mods
    return ParameterBlock(operation, _KINDS.get(mods[-1], UNSIGNED), *flags, target, source, members)


@unit(
    "redux.sync .sum.int d, a, mask",
    "redux.sync .bits.b32 d, a, mask",
    "redux.sync .extreme{.abs}{.NaN}.f32 d, a, mask",
    sum="add min max",
    int="u32 s32",
    bits="and or xor",
    extreme="min max",
    writes=(0,),
    section="9.7.13.12",
    fast=FastForm(lambda instr, args, unset: _block(instr, *args), called=reduce_warp, unheard=True),
)
def redux(instr):
    block = _block(instr)

    def act(cluster: Cluster, split: Split, args, present: int, values: np.ndarray) -> None:
        held = np.ascontiguousarray(values)
        cluster.write(split, args[0], np.uint64(reduce_now(block.address, address_in_host(held), present)))

    return together(act)
