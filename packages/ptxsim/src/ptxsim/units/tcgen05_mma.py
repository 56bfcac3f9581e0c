"""tcgen05.mma (PTX ISA 9.7.16.9): D[tensor memory] = A * B (+ D), with operands located by descriptors; also
with .ws, with block scaling (tcgen05_scales.py) and with a sparse A (tcgen05_sparse.py).

Products are computed in float32 by numpy's BLAS on the values that the descriptors actually point to.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.records import TensorWork
from ptxsim.frontend.ast import Imm, Instr, Mem, Vec
from ptxsim.isa.address_map import SHARED_START
from ptxsim.isa.layouts.block_scale import KINDS as BLOCK_SCALED_KINDS
from ptxsim.isa.layouts.block_scale import vector_size
from ptxsim.isa.layouts.tmem import data_path
from ptxsim.isa.number_formats import DECODERS, IN_TENSOR_MEMORY
from ptxsim.isa.operands import MemArg, PredArg
from ptxsim.machine.async_queue import Work
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.machine.tensor_memory import COLUMNS, LANES, split_address
from ptxsim.units.bulk_groups import each_lane
from ptxsim.units.matrix_operands import K_BYTES, operand_chunks, read_operand
from ptxsim.units.registry import refuse, unit
from ptxsim.units.tcgen05_alloc import has_pair
from ptxsim.units.tcgen05_columns import column_mask
from ptxsim.units.tcgen05_product import Product, decode, operand_index, operand_lanes, pair, side_of
from ptxsim.units.tcgen05_result import write_result
from ptxsim.units.tcgen05_scales import scaled_product
from ptxsim.units.tcgen05_sparse import dense

_KINDS = ("f16", "tf32", "f8f6f4", "i8")
_PLAIN = " ".join(f"kind::{kind}" for kind in _KINDS)
_SCALED_D = ("f16", "tf32")  # kinds that may scale D where it is an input
_USES = ("fill", "use", "lastuse", "discard")


@unit(
    "tcgen05.mma .group.kind{.collector} d, a, b, descriptor{, disabled}, enable{, scale}",
    "tcgen05.mma .group.scaled.block_scale{.vector}{.collector} d, a, b, descriptor, [sa], [sb], enable",
    "tcgen05.mma.sp .group.kind{.collector} d, a, b, [m], descriptor{, disabled}, enable{, scale}",
    "tcgen05.mma.sp .group.scaled.block_scale{.vector}{.collector} d, a, b, [m], i, [sa], [sb], enable",
    "tcgen05.mma .group.kind.ashift{.last} d, [a], b, descriptor{, disabled}, enable{, scale}",
    "tcgen05.mma.sp .group.kind.ashift{.last} d, [a], b, [m], descriptor{, disabled}, enable{, scale}",
    "tcgen05.mma.ws .cta_group::1.kind{.weights} d, a, b, descriptor, enable{, mask}",
    kind=_PLAIN,
    scaled=" ".join(f"kind::{kind}" for kind in BLOCK_SCALED_KINDS),
    vector="scale_vec::1X scale_vec::2X scale_vec::4X block16 block32",
    collector=" ".join(f"collector::a::{use}" for use in _USES),
    last="collector::a::lastuse collector::a::discard",
    weights=" ".join(f"collector::b{n}::{use}" for n in range(4) for use in _USES),
    section="9.7.16.9.1",
    fire_and_forget=True,
    tensor_core=True,
    prepare=lambda args: _operands(*args),
)
def mma(instr):
    kind = next(m[6:] for m in instr.mods if m.startswith("kind::"))
    constant = _constant_enable(instr, kind)
    group, ws = 2 if "cta_group::2" in instr.mods else 1, "ws" in instr.mods
    sparse, shift = "sp" in instr.mods, "ashift" in instr.mods
    factors = _factors(instr, kind) if "block_scale" in instr.mods else 0
    product_of = functools.lru_cache(maxsize=4096)(
        functools.partial(_product_of, (kind, group, ws, factors, sparse, shift))
    )

    def run(cluster: Cluster, split: Split, operands: Operands):
        values = tuple(cluster.scalars(split, operands.slots))
        product, problem = product_of(operands, split.cta, cluster.ctas, values)
        if product is None:
            kind_of, severity, message = problem
            cluster.reporter.add(kind_of, severity, message, split=split)
            return
        if group == 2 or not split.one_lane:
            _check_issue(cluster, split, group)
        enabled = cluster.predicate(split, operands.enable) if constant is None else constant
        for where in each_lane(split):
            adds = enabled & where.mask != 0
            op = TensorWork("tcgen05.mma", "an MMA", where, group, product, adds, product.partial)
            cluster.bus.tensor_issue(cluster, split, op)
            cluster.tensor_operations += 1
            if not cluster.dry:
                work = Work(("tensor", split.thread), _by_batch, "tcgen05.mma", _execute_all, op)
                cluster.engine.submit(work)

    return run


def _constant_enable(instr: Instr, kind: str) -> int | None:
    """The lanes for which D is an input, where a constant says so (4.5.3); None where a predicate does.

    PtxError if what follows it is no scale-input-d or zero-column mask.
    """
    enable, *last = (o for o in instr.operands[4:] if not isinstance(o, Mem | Vec))
    if "sp" in instr.mods:
        enable, *last = last
    if last and "ws" not in instr.mods:
        if kind not in _SCALED_D:
            raise refuse(instr, "scale-input-d is for .kind::f16 and .kind::tf32 alone")
        if len(last) > 1 or not isinstance(last[0], Imm) or not 0 <= last[0].bits <= 15:
            raise refuse(instr, "scale-input-d is a constant from 0 to 15")
    return None if not isinstance(enable, Imm) else 0xFFFF_FFFF if enable.bits else 0


def _product_of(
    modifiers: tuple, operands: Operands, cta: int, ctas: int, values: tuple[int, ...]
) -> tuple[Product | None, tuple[str, str, str]]:
    """(product of an instruction whose slots hold these values, unused), or (None, the finding)."""
    d, a, b, descriptor, *rest = values
    form = descriptor & 0xFFFF_FFFF, *modifiers
    shape, problem = decode(*form)
    others = [value + offset & 0xFFFF_FFFF for value, offset in zip(rest, operands.offsets, strict=True)]
    last, ws = rest[-1] if operands.last else 0, modifiers[2]
    if shape is not None and ws:
        try:
            column_mask(last, shape.m, shape.n, form[0])
        except ValueError as error:
            shape, problem = None, ("descriptor", "error", str(error))
        except NotImplementedError as error:
            shape, problem = None, ("unsupported", "incomplete", f"{error} is not modelled")
    if shape is None:
        return None, problem
    disabled, scales = others[: operands.disabled], others[operands.disabled :][: operands.scales]
    metadata = others[operands.disabled + operands.scales] if operands.metadata else -1
    of_a = ("tmem", a + operands.a_offset & 0xFFFF_FFFF) if operands.a_in_tmem else a
    at = of_a, b, *split_address(d + operands.d_offset), tuple(scales), metadata, tuple(disabled)
    extra = (0, last) if ws else (last, 0)
    return Product(form, shape, cta, pair(modifiers[1], cta, ctas), *at, *extra), problem


def _factors(instr, kind: str) -> int:
    try:
        return vector_size(kind, instr.mods)
    except ValueError as error:
        raise refuse(instr, str(error)) from None


@dataclass(frozen=True, eq=False)
class Operands:
    """The decoded operands of a tcgen05.mma."""

    slots: list[int]  # of D's address, A, B, the instruction descriptor, then of all others
    d_offset: int
    a_in_tmem: bool
    a_offset: int
    enable: int  # code of the predicate that says whether D is an input; -1: a constant does
    offsets: list[int]  # to add to the values of the other slots, which are, in this order:
    disabled: int  # ... this many masks of disabled lanes,
    scales: int  # ... this many addresses of scale factors,
    metadata: bool  # ... if true, the address of the indices of a sparse A,
    last: bool  # ... if true, the zero-column mask of .ws, or the scale of D


def _operands(d: MemArg, a, b: int, *rest) -> Operands:
    metadata = rest[:1] if isinstance(rest[0], MemArg) else ()
    descriptor, *others = rest[len(metadata) :]
    masks = next((r for r in others if isinstance(r, tuple)), ())
    enable, *last = (r for r in others if not isinstance(r, tuple | MemArg))
    scales = [r for r in others if isinstance(r, MemArg)]
    in_tmem = isinstance(a, MemArg)
    addresses = [*scales, *metadata]
    slots = [d.slot, a.slot if in_tmem else a, b, descriptor, *masks, *(m.slot for m in addresses), *last]
    offsets = [*(0 for _ in masks), *(m.offset for m in addresses), *(0 for _ in last)]
    counts = len(masks), len(scales), bool(metadata), bool(last)
    code = enable.code if isinstance(enable, PredArg) else -1
    return Operands(slots, d.offset, in_tmem, a.offset if in_tmem else 0, code, offsets, *counts)


def _check_issue(cluster: Cluster, split: Split, group: int) -> None:
    if not split.one_lane:
        message = f"tcgen05.mma issued by {len(split.lanes)} lanes: the product is computed as many times"
        cluster.reporter.add("illegal", "error", message, CAUSES["mma-lanes"], split, key="mma-lanes")
    has_pair(cluster, split, group)


def _by_batch() -> None:
    """Never called: MMAs run by _execute_all."""
    raise AssertionError


def _execute_all(batch: list[Work]) -> None:
    """Executes consecutive MMAs of one thread; those that accumulate into the same D execute as one."""
    ops: list[Any] = [work.op for work in batch]
    cluster, start, key = ops[0].where.cluster, 0, ops[0].task.key
    for i, op in enumerate(ops[1:], 1):
        own = op.task.key
        if not op.accumulates or own != key or op.task.never_merged or op.task.d_scale:
            execute(cluster, ops[start:i])
            start, key = i, own
    execute(cluster, ops[start:])


def operands(cluster: Cluster, ops: list[TensorWork]) -> tuple[np.ndarray, np.ndarray]:
    """float32 A (M, K) and B (N, K) of MMAs that execute as one, concatenated along K, with their current
    values: for observers of `tensor_execute`.
    """
    ranks = ops[0].task.ranks
    a, b = (np.concatenate([_operand(cluster, ops, rank, side) for rank in ranks]) for side in "ab")
    return a, b


def execute(cluster: Cluster, ops: list[TensorWork]) -> None:
    """Executes instructions that accumulate into the same D as one product with a longer K."""
    first, single = ops[0], ops[0].task.never_merged
    ranks = first.task.ranks
    cluster.bus.tensor_execute(cluster, ops)
    halves = [_operand(cluster, ops, rank, "b") for rank in ranks]
    b = halves[0] if len(halves) == 1 else np.concatenate(halves)
    for i, rank in enumerate(ranks):
        if single:
            product = _special_product(cluster, first, rank, b)
        else:
            product = _product(cluster, ops, rank, b)
        if product is not None:
            write_result(cluster, first, rank, i, product)


def _special_product(cluster: Cluster, op: TensorWork, rank: int, b: np.ndarray) -> np.ndarray | None:
    """The product with a sparse A, with scale factors, or both; None, with a finding, if the metadata or
    factors are not available.
    """
    a: np.ndarray | None = _operand(cluster, [op], rank, "a")
    if a is not None and op.task.metadata >= 0:
        a = dense(cluster, op, rank, a)
    if a is None:
        return None
    return scaled_product(cluster, op, rank, a, b) if op.task.scales else _multiplied(op.task, a, b)


def _product(cluster: Cluster, ops: list[TensorWork], rank: int, b: np.ndarray) -> np.ndarray:
    """A times B for the rows of one CTA. In some layouts, each part of N takes A from lanes of its own."""
    op = ops[0].task
    if not isinstance(op.a, tuple) or op.copies == 1:
        return _multiplied(op, _operand(cluster, ops, rank, "a"), b)
    found = [
        _multiplied(op, _operand(cluster, ops, rank, "a", part), columns)
        for part, columns in enumerate(np.split(b, op.copies))
    ]
    return np.concatenate(found, axis=1)


def _multiplied(op: Product, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if op.shape.d_type == "s32":
        return (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.int64).astype(np.int32)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity are normal results
        return a @ b.T


def _operand(cluster: Cluster, ops: list[TensorWork], rank: int, which: str, part: int = 0) -> np.ndarray:
    """float32 (rows, K): A or B in CTA `rank`, with the K steps of all `ops` concatenated."""
    own = ops[0].task
    _, rows, mn, fmt, negate = side_of(own, which)
    sources: tuple[Any, ...] = tuple([op.task.a if which == "a" else op.task.b for op in ops])
    if isinstance(sources[0], tuple):
        found = [_from_tmem(cluster, rank, s[1], rows, op, part) for s, op in zip(sources, ops, strict=True)]
        values = np.concatenate(found, axis=1)
    else:
        mask = own.columns if which == "b" else None
        rows = mask.rows(16 // DECODERS[fmt].bytes if mn else 1) if mask else rows
        values = _from_shared(cluster, rank, sources, rows, mn, fmt, ops[0].where, own.k_bytes(which))
        values = mask.applied(values) if mask else values
    return -values if negate else values


def _from_shared(
    cluster: Cluster, rank: int, descriptors: tuple, rows: int, mn: bool, fmt: str, where, k_bytes: int
) -> np.ndarray:
    width = DECODERS[fmt].bytes
    try:
        chunks = operand_chunks(descriptors, rows, width, mn, k_bytes=k_bytes)
        if chunks.first < SHARED_START or chunks.last >= cluster.launch.shared_end:
            raise ValueError(
                f"matrix descriptor {descriptors[0]:#x} reaches bytes {chunks.first}..{chunks.last} of "
                f"a shared memory window "
                f"of {SHARED_START}..{cluster.launch.shared_end - 1}"
            )
    except ValueError as error:
        cluster.reporter.add("descriptor", "error", str(error), "", where)
        return np.zeros((rows, len(descriptors) * k_bytes // width), np.float32)
    return read_operand(cluster, rank, chunks, rows, fmt, mn)


def _from_tmem(cluster: Cluster, rank: int, address: int, rows: int, op: TensorWork, part: int) -> np.ndarray:
    own = op.task
    decoder = IN_TENSOR_MEMORY.get(own.shape.a_type) or DECODERS[own.shape.a_type]
    first, column = split_address(address)
    lanes, end = operand_lanes(own, part), column + K_BYTES // 4
    problem = ""
    if lanes[-1] >= LANES or end > COLUMNS:
        problem = f"A at lane {first}, column {column} passes the end of tensor memory"
    elif data_path(own.shape.m, own.group, own.ws) == "F" and first != own.lane:
        problem = f"A at lane {first}, D at lane {own.lane}: M=64 needs the same for both"
    if problem:
        hint = "with M=64 both must start at lane 0, or both at lane 16 (PTX ISA 9.7.16.10.5)"
        cluster.reporter.add("illegal", "error", f"tcgen05.mma: {problem}", hint, op.where)
        return np.zeros((rows, K_BYTES // decoder.bytes), np.float32)
    cells = cluster.tmem[rank].cells[operand_index(own, part), column:end]
    return decoder.decode(np.ascontiguousarray(cells).view(decoder.raw)).reshape(rows, -1)
