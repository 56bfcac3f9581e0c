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
from ptxsim.machine.checked_access import checked_view
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.atomic_lanes import (
    FLOAT,
    OPERATIONS,
    SIGNED,
    UNSIGNED,
    integers,
    log_whole,
    sums,
    update_lanes,
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


def _fast_update(instr, args: tuple, unset) -> Block | None:
    mods, returns = set(instr.mods), instr.op == "atom"
    operation, kind, lanes_per = _decoded(instr)
    target, address, b, *more = args if returns else (-1, *args)
    if lanes_per > 1 or kind == "bf16" or np.dtype(kind).itemsize < 4 or _VECTORS.keys() & mods:
        return None
    what = FLOAT if np.dtype(kind).kind == "f" else SIGNED if np.dtype(kind).kind == "i" else UNSIGNED
    c = more[0] if operation == "cas" else b
    operation, size = OPERATIONS.index(operation), np.dtype(kind).itemsize
    space = SPACES.get(_space(mods), SPACE_GENERIC)
    return Block(address.slot, address.offset, space, size, operation, what, b, c, target)


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
    mods = set(instr.mods)
    operation, kind, lanes_per = _decoded(instr)
    space = _space(mods)
    vector = _vector(instr, instr.operands[2 if returns else 1])
    single = vector == 1 and lanes_per == 1 and not isinstance(kind, str) and np.dtype(kind).itemsize >= 4
    quick = single and (np.dtype(kind).kind != "f" or operation == "add")

    def run(cluster: Cluster, split: Split, args):
        targets, arg, *sources = args if returns else (None, *args)
        items = slots_of(sources[0])
        third = cluster.read(split, sources[1]) if operation == "cas" else None
        width = 2 if kind == "bf16" else np.dtype(kind).itemsize
        size = width * lanes_per
        addresses, done = cluster.addresses(split, arg), 0
        if quick:
            target = targets if returns else -1
            done = _together(cluster, split, addresses, items[0], third, target, space, operation, kind)
        for lane, address in zip(split.lanes[done:], addresses[done:], strict=True):
            for v in range(vector):
                view = checked_view(
                    cluster, split, int(lane), int(address) + v * size, size, space, write=True
                )
                if view is None:
                    continue
                old = int.from_bytes(view.tobytes(), "little")
                b = int(cluster.registers[split.warp, items[v], lane])
                c = int(third[lane]) if third is not None else 0
                there = is_global(space, int(address))
                new = _made(operation, kind, lanes_per, old, b, c, size, there)
                if new != view.tobytes():  # a failed compare-and-swap is no progress
                    cluster.effects += 1
                    view[:] = np.frombuffer(new, np.uint8)
                if returns:
                    output = slots_of(targets)[v]
                    if output != -1:
                        cluster.registers[split.warp, output, lane] = old

    return run


def _made(operation: str, kind, count: int, old: int, b: int, c: int, size: int, in_global: bool) -> bytes:
    """New bytes of an element, as the memory that it is in makes them."""
    flushes = operation == "add" and kind is np.float32 and in_global
    new = (flushed_sum if flushes else combine)(operation, kind, count, old, b, c, size)
    return _shared_nan(new, old, b) if kind is np.float64 and not in_global else new


def _together(
    cluster: Cluster, split: Split, addresses, item: int, third, target: int, space: str, operation: str, kind
) -> int:
    """How many lanes are done at once, from the first one on."""
    size, lanes = np.dtype(kind).itemsize, split.lanes
    found = whole_warp(cluster, split, addresses, size, space)
    if found is None or not found[0].flags.aligned or found[0].ctypes.data % size:
        return 0
    memory, offsets, places = found
    unsigned = np.dtype(f"u{size}")
    memory, at = memory[: len(memory) // size * size], offsets // size
    b = cluster.registers[split.warp, item, lanes].astype(unsigned).view(kind)
    old = np.empty(len(at), unsigned)
    if np.dtype(kind).kind == "f":
        flush = kind is np.float32 and is_global(space, int(addresses[0]))
        done, changed = sums(memory.view(kind), memory.view(unsigned), at, b, flush, old)
    else:
        c = b if third is None else third[lanes].astype(unsigned).view(kind)
        changed = integers(memory.view(kind), at, b, c, OPERATIONS.index(operation), old.view(kind))
        done = len(at)
    log_whole(cluster, split, lanes[:done], places[:done], size)
    cluster.effects += int(changed)
    if target != -1:
        cluster.registers[split.warp, target, lanes[:done]] = old[:done]
    return done


def is_global(space: str, address: int) -> bool:
    return space == "global" or (space == "generic" and address_map.is_global(address))


def flushed_sum(operation: str, kind, count: int, old: int, b: int, c: int, size: int) -> bytes:
    """add.f32 in global memory: subnormal numbers count as zeros of their sign (PTX ISA 9.7.13.6, .add)."""
    total = int.from_bytes(combine(operation, kind, count, _flush(old), _flush(b), c, size), "little")
    return _flush(total).to_bytes(size, "little")


def _flush(bits: int) -> int:
    return bits & 0x8000_0000 if bits & 0x7F80_0000 == 0 else bits


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


def _shared_nan(raw: bytes, old: int, b: int) -> bytes:
    """The same sum in shared memory, where a thread adds: what was there goes first, made quiet."""
    if not np.isnan(np.frombuffer(raw, np.float64)[0]):
        return raw
    return (_nan64(old, b & 0xFFFF_FFFF_FFFF_FFFF) | 1 << 51).to_bytes(8, "little")


def _to_bf16(values: np.ndarray) -> np.ndarray:
    bits = values.view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FFF, rounded).astype(np.uint16)
