"""atom and red: read-modify-write of one memory element per lane, lanes in ascending order (PTX ISA 9.7.13.6,
.7).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxsim.frontend.ast import Vec
from ptxsim.isa import address_map
from ptxsim.isa.address_map import FAULT_MISALIGNED, SPACE_GENERIC, SPACES
from ptxsim.jit.called import ParameterBlock
from ptxsim.machine.checked_access import checked_view, log_rows
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.atomic_lanes import update_lanes, update_lanes_at, whole_warp
from ptxsim.units.atomic_values import OPERATIONS, TYPES
from ptxsim.units.atomics_b128 import exchange_pairs
from ptxsim.units.registry import FastForm, refuse, slots_of, unit

_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_HALVES = "f16 f16x2 bf16 bf16x2"
# the operations of atom and red, after the modifiers of the memory access (PTX ISA 9.7.13.6, .7)
_FORMS = (
    ".bits{.hint}.word",
    ".add{.hint}.sum",
    ".step{.hint}.u32",
    ".extreme{.hint}.int",
    ".add.noftz{.hint}.half",
)
_VECTOR_FORMS = (
    ".add{.hint}.pair.f32",
    ".op.noftz{.hint}.many.single",
    ".op.noftz{.hint}.pair.packed",
)
_SETS: dict[str, Any] = {
    "mem": "shared shared::cta shared::cluster global",
    "bits": "and or xor",
    "word": "b32 b64",
    "sum": "u32 s32 u64 f32 f64",
    "step": "inc dec",
    "extreme": "min max",
    "int": "u32 s32 u64 s64",
    "half": _HALVES,
    "op": "add min max",
    "pair": "v2 v4",
    "many": "v2 v4 v8",
    "single": "f16 bf16",
    "packed": "f16x2 bf16x2",
}


def _blocks(instr, args: tuple) -> list[ParameterBlock]:
    """The ParameterBlock that compiled code needs for each element of a lane."""
    operation = next(m for m in instr.mods if m in OPERATIONS)
    target, address, b, *more = args if instr.op == "atom" else (-1, *args)
    items, (kind, size) = slots_of(b), TYPES[instr.mods[-1]]
    targets = target if isinstance(target, tuple) else (target,) * len(items)
    where, number = SPACES.get(_space(instr), SPACE_GENERIC), OPERATIONS.index(operation)
    return [
        ParameterBlock(
            *(address.slot, address.offset + v * size, where, size, number, kind, item),
            *(more[0] if operation == "cas" else item, targets[v]),
        )
        for v, item in enumerate(items)
    ]


def _fast_update(instr, args: tuple, unset) -> ParameterBlock | None:
    blocks = _blocks(instr, args) if "b128" not in instr.mods else []
    return blocks[0] if len(blocks) == 1 else None


def _space(instr) -> str:
    spaces = ("shared::cluster", "shared::cta", "shared", "global")
    return next((m for m in spaces if m in instr.mods), "generic")


_AT_ONCE = FastForm(_fast_update, called=update_lanes)


@unit(
    *(f"atom {{.sem}}{{.scope}}{{.mem}}{form} d, [a], b{{, policy}}" for form in _FORMS),
    *(f"atom {{.sem}}{{.scope}}{{.global}}{form} d, [a], b{{, policy}}" for form in _VECTOR_FORMS),
    "atom {.sem}{.scope}{.mem}.exch{.hint}.word d, [a], b{, policy}",
    "atom {.sem}{.scope}{.mem}.cas.compared d, [a], b, c",
    "atom {.sem}{.scope}{.mem}.exch.b128 d, [a], b",
    "atom {.sem}{.scope}{.mem}.cas.b128 d, [a], b, c",
    sem="relaxed acquire release acq_rel",
    compared="b16 b32 b64",
    writes=(0,),
    section="9.7.13.6",
    fast=_AT_ONCE,
    **_SETS,
)
def atom(instr):
    return exchange_pairs(instr, _space(instr)) if "b128" in instr.mods else _update(instr, returns=True)


@unit(
    *(f"red {{.sem}}{{.scope}}{{.mem}}{form} [a], b{{, policy}}" for form in _FORMS),
    *(f"red {{.sem}}{{.scope}}{{.global}}{form} [a], b{{, policy}}" for form in _VECTOR_FORMS),
    sem="relaxed release",
    section="9.7.13.7",
    fast=_AT_ONCE,
    **_SETS,
)
def red(instr):
    return _update(instr, returns=False)


def _vector(instr, value) -> int:
    """The number of elements that a lane updates; refuses forms that the boxes allow but no chip has."""
    vector = next((_VECTORS[m] for m in instr.mods if m in _VECTORS), 1)
    if "L2::cache_hint" in instr.mods and any(mod.startswith("shared") for mod in instr.mods):
        raise refuse(instr, "shared memory has no cache, so .L2::cache_hint has no meaning")
    if (len(value.items) if isinstance(value, Vec) else 1) != vector:
        raise refuse(instr, f"{instr.name} takes {vector} registers as its value")
    return vector


def _update(instr, returns: bool):
    vector = _vector(instr, instr.operands[2 if returns else 1])
    space, (_, size) = _space(instr), TYPES[instr.mods[-1]]
    blocks: list[ParameterBlock] = []  # made at the first execution, when the operands have slots

    def run(cluster: Cluster, split: Split, args):
        if not blocks:
            blocks.extend(_blocks(instr, args))
        addresses = cluster.addresses(split, args[returns])
        hosts, reached, shared = _hosts(cluster, split, addresses, vector, size, space)
        registers = cluster.registers[split.warp].ctypes.data
        for block, own, lanes in zip(blocks, hosts, reached, strict=True):
            changed = update_lanes_at(block.address, lanes, own.ctypes.data, shared, registers)
            cluster.effects += changed
            cluster.published += changed * (lanes & ~shared != 0)

    return run


def _hosts(cluster: Cluster, split: Split, addresses: np.ndarray, vector: int, size: int, space: str):
    """For each element, host addresses by lane, and the mask of lanes with a valid one; last, the mask of
    lanes in shared memory. Reports the accesses to observers. A vector's address is a multiple of its size,
    as an H200 requires (research/chip/vector_atomics.cu).
    """
    hosts, reached, shared = np.zeros((vector, 32), np.int64), [0] * vector, 0
    odd = addresses % (vector * size) != 0
    places = (addresses[:, None] + size * np.arange(vector)).ravel()
    found = None if odd.any() else whole_warp(cluster, split, places, size, space)
    if found is not None:
        memory, offsets, places = found
        hosts[:, split.lanes] = memory.ctypes.data + offsets.reshape(-1, vector).T
        if cluster.bus.heard:
            lanes = np.repeat(split.lanes, vector)
            cluster.bus.accesses(cluster, log_rows(split, lanes, places, size, write=True))
        return hosts, [split.mask] * vector, 0 if _is_global(space, int(addresses[0])) else split.mask
    if odd.any():
        where = split.at(1 << int(split.lanes[odd][0]))
        cluster.reporter.fault(where, FAULT_MISALIGNED, int(addresses[odd][0]), int(odd.sum()))
    for lane, address in zip(split.lanes[~odd].tolist(), addresses[~odd].tolist(), strict=True):
        shared |= (not _is_global(space, address)) << lane
        for v in range(vector):
            view = checked_view(cluster, split, lane, address + v * size, size, space, write=True)
            if view is not None:
                hosts[v, lane] = view.ctypes.data
                reached[v] |= 1 << lane
    return hosts, reached, shared


def _is_global(space: str, address: int) -> bool:
    return space == "global" or (space == "generic" and address_map.is_global(address))
