"""atom and red: read-modify-write of one memory element per lane, lanes in ascending order (PTX ISA 9.7.13.6,
.7).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxsim.frontend.ast import Vec
from ptxsim.isa import address_map
from ptxsim.isa.address_map import SPACE_GENERIC, SPACES
from ptxsim.isa.number_formats import canonical_nans
from ptxsim.jit.called import Block
from ptxsim.machine.checked_access import checked_view, log_rows
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.atomic_lanes import (
    FLOAT,
    OPERATIONS,
    SIGNED,
    UNSIGNED,
    update_lanes,
    update_words,
    whole_warp,
)
from ptxsim.units.registry import FastForm, refuse, slots_of, unit

_OPERATIONS = {
    "and": lambda old, b, c: old & b,
    "or": lambda old, b, c: old | b,
    "xor": lambda old, b, c: old ^ b,
    "exch": lambda old, b, c: b,
    "cas": lambda old, b, c: c if old == b else old,
    "add": lambda old, b, c: old + b,
    "min": lambda old, b, c: np.fmin(old, b),
    "max": lambda old, b, c: np.fmax(old, b),
    "inc": lambda old, b, c: old * 0 if old >= b else old + old.dtype.type(1),
    "dec": lambda old, b, c: b if old == 0 or old > b else old - old.dtype.type(1),
}
TYPES: dict[str, tuple[Any, int]] = {  # -> (numpy type, or "bf16", elements in a register)
    "b16": (np.uint16, 1), "b32": (np.uint32, 1), "b64": (np.uint64, 1),
    "u32": (np.uint32, 1), "u64": (np.uint64, 1), "s32": (np.int32, 1), "s64": (np.int64, 1),
    "f16": (np.float16, 1), "f16x2": (np.float16, 2), "bf16": ("bf16", 1), "bf16x2": ("bf16", 2),
    "f32": (np.float32, 1), "f64": (np.float64, 1),
}  # fmt: skip
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_HALVES = "f16 f16x2 bf16 bf16x2"
# the operations of both, after the modifiers of memory (PTX ISA 9.7.13.6, .7)
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


def _blocks(instr, args: tuple) -> list[Block]:
    """What compiled code must know of each element of a lane; none of elements of 16 bits."""
    operation, kind, count = _decoded(instr)
    if count > 1 or kind == "bf16" or np.dtype(kind).itemsize < 4:
        return []
    target, address, b, *more = args if instr.op == "atom" else (-1, *args)
    items, space = slots_of(b), SPACES.get(_space(set(instr.mods)), SPACE_GENERIC)
    targets = target if isinstance(target, tuple) else (target,) * len(items)
    what = FLOAT if np.dtype(kind).kind == "f" else SIGNED if np.dtype(kind).kind == "i" else UNSIGNED
    size, number = np.dtype(kind).itemsize, OPERATIONS.index(operation)
    return [
        Block(
            *(address.slot, address.offset + v * size, space, size, number, what, item),
            *(more[0] if operation == "cas" else item, targets[v]),
        )
        for v, item in enumerate(items)
    ]


def _fast_update(instr, args: tuple, unset) -> Block | None:
    blocks = _blocks(instr, args)
    return blocks[0] if len(blocks) == 1 else None


def _decoded(instr) -> tuple:
    """(operation, numpy type or "bf16", elements in a register)."""
    return next(m for m in instr.mods if m in _OPERATIONS), *TYPES[instr.mods[-1]]


def _space(mods: set[str]) -> str:
    return next((m for m in ("shared::cluster", "shared::cta", "shared", "global") if m in mods), "generic")


_AT_ONCE = FastForm(_fast_update, called=update_lanes)


@unit(
    *(f"atom {{.sem}}{{.scope}}{{.mem}}{form} d, [a], b{{, policy}}" for form in _FORMS),
    *(f"atom {{.sem}}{{.scope}}{{.global}}{form} d, [a], b{{, policy}}" for form in _VECTOR_FORMS),
    "atom {.sem}{.scope}{.mem}.exch{.hint}.word d, [a], b{, policy}",
    "atom {.sem}{.scope}{.mem}.cas.compared d, [a], b, c",
    sem="relaxed acquire release acq_rel",
    compared="b16 b32 b64",
    writes=(0,),
    section="9.7.13.6",
    fast=_AT_ONCE,
    **_SETS,
)
def atom(instr):
    return _update(instr, returns=True)


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
    """Elements that a lane updates; refuses what the syntax boxes allow and no chip has."""
    vector = next((_VECTORS[m] for m in instr.mods if m in _VECTORS), 1)
    if "L2::cache_hint" in instr.mods and any(mod.startswith("shared") for mod in instr.mods):
        raise refuse(instr, "shared memory has no cache, so that .L2::cache_hint says nothing")
    if (len(value.items) if isinstance(value, Vec) else 1) != vector:
        raise refuse(instr, f"{instr.name} takes {vector} registers as its value")
    return vector


def _update(instr, returns: bool):
    _, kind, _ = _decoded(instr)
    vector = _vector(instr, instr.operands[2 if returns else 1])
    if kind == "bf16" or np.dtype(kind).itemsize < 4:
        return _of_halves(instr, vector, returns)
    space, size = _space(set(instr.mods)), np.dtype(kind).itemsize
    blocks: list[Block] = []  # made at the first execution, when the operands have slots

    def run(cluster: Cluster, split: Split, args):
        if not blocks:
            blocks.extend(_blocks(instr, args))
        addresses = cluster.addresses(split, args[returns])
        hosts, reached, shared = _hosts(cluster, split, addresses, vector, size, space)
        registers = cluster.registers[split.warp].ctypes.data
        for block, own, lanes in zip(blocks, hosts, reached, strict=True):
            cluster.effects += update_words(block.address, lanes, own.ctypes.data, shared, registers)

    return run


def _hosts(cluster: Cluster, split: Split, addresses: np.ndarray, vector: int, size: int, space: str):
    """Of each element: the host address by lane, and a mask of the lanes that have one; last, a mask of the
    lanes in shared memory. Tells of the accesses.
    """
    hosts, reached, shared = np.zeros((vector, 32), np.int64), [0] * vector, 0
    found = whole_warp(cluster, split, addresses, size, space) if vector == 1 else None
    if found is not None:
        memory, offsets, places = found
        hosts[0, split.lanes] = memory.ctypes.data + offsets
        if cluster.bus.heard:
            cluster.bus.accesses(cluster, log_rows(split, split.lanes, places, size, write=True))
        return hosts, [split.mask], 0 if is_global(space, int(addresses[0])) else split.mask
    for lane, address in zip(split.lanes.tolist(), addresses.tolist(), strict=True):
        shared |= (not is_global(space, address)) << lane
        for v in range(vector):
            view = checked_view(cluster, split, lane, address + v * size, size, space, write=True)
            if view is not None:
                hosts[v, lane] = view.ctypes.data
                reached[v] |= 1 << lane
    return hosts, reached, shared


def _of_halves(instr, vector: int, returns: bool):
    """The handler for elements of 16 bits, and pairs of them in a register."""
    operation, kind, count = _decoded(instr)
    space, size = _space(set(instr.mods)), 2 * count

    def run(cluster: Cluster, split: Split, args):
        targets, arg, *sources = args if returns else (None, *args)
        items = slots_of(sources[0])
        third = cluster.read(split, sources[1]) if operation == "cas" else None
        for lane, address in zip(split.lanes.tolist(), cluster.addresses(split, arg).tolist(), strict=True):
            for v in range(vector):
                view = checked_view(cluster, split, lane, address + v * size, size, space, write=True)
                if view is None:
                    continue
                old = int.from_bytes(view.tobytes(), "little")
                b = int(cluster.registers[split.warp, items[v], lane])
                c = int(third[lane]) if third is not None else 0
                new = combine(operation, kind, count, old, b, c, size)
                if new != view.tobytes():  # a failed compare-and-swap is no progress
                    cluster.effects += 1
                    view[:] = np.frombuffer(new, np.uint8)
                if returns and slots_of(targets)[v] != -1:
                    cluster.registers[split.warp, slots_of(targets)[v], lane] = old

    return run


def is_global(space: str, address: int) -> bool:
    return space == "global" or (space == "generic" and address_map.is_global(address))


def combine(operation: str, kind, count: int, old: int, b: int, c: int, size: int) -> bytes:
    """New bytes of an element; packed types act on each half. bf16 rounds to nearest even once."""
    mask = (1 << 8 * size) - 1
    raw = [
        np.frombuffer((x & mask).to_bytes(size, "little"), np.uint16 if kind == "bf16" else kind)
        for x in (old, b, c)
    ]
    if kind == "bf16":
        raw = [(r.astype(np.uint32) << 16).view(np.float32) for r in raw]
    with np.errstate(over="ignore", invalid="ignore"):
        values = [_OPERATIONS[operation](raw[0][i], raw[1][i], raw[2][i]) for i in range(count)]
    result = np.array(values, raw[0].dtype)
    if kind is np.float64 and np.isnan(result).any():
        return _nan64(b & mask, old & mask).to_bytes(8, "little")  # as an H200 leaves it in global memory
    return (_to_bf16(result) if kind == "bf16" else canonical_nans(result)).tobytes()


def _nan64(*operands: int) -> int:
    """The first operand that is a NaN, or the NaN of an invalid sum."""
    nans = [x for x in operands if x & 0x7FFF_FFFF_FFFF_FFFF > 0x7FF0_0000_0000_0000]
    return nans[0] if nans else 0xFFF8_0000_0000_0000


def _to_bf16(values: np.ndarray) -> np.ndarray:
    bits = values.view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FFF, rounded).astype(np.uint16)
