"""tcgen05.mma (PTX ISA 9.7.16.9): D[tensor memory] = A * B (+ D), operands found through the descriptors
given; with .ws, with block scaling (tcgen05_scales.py), with a sparse A (tcgen05_sparse.py).

Products are computed in float32 by numpy's BLAS on the values that the descriptors really point at.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.records import Footprint, Rectangle, SharedSpan, rectangles
from ptxsim.frontend.parser import Imm
from ptxsim.isa.address_map import SHARED_START
from ptxsim.isa.layouts import (
    InstructionDescriptor,
    data_path,
    decode_instruction_descriptor,
    operand_layout,
)
from ptxsim.isa.layouts.block_scale import KINDS as BLOCK_SCALED_KINDS
from ptxsim.isa.layouts.block_scale import decode_block_scaled, vector_size
from ptxsim.isa.number_formats import DECODERS, IN_TENSOR_MEMORY
from ptxsim.isa.operands import MemArg, PredArg
from ptxsim.machine.async_queue import Work
from ptxsim.machine.tensor_memory import COLUMNS, LANES, split_address
from ptxsim.units.bulk_groups import each_lane
from ptxsim.units.matrix_operands import K_BYTES, operand_chunks, read_operand
from ptxsim.units.registry import refuse, unit
from ptxsim.units.tcgen05_result import result_blocks, write_result
from ptxsim.units.tcgen05_scales import scale_columns, scaled_product
from ptxsim.units.tcgen05_sparse import MODELLED_ROWS, dense, metadata_columns

_KINDS = ("f16", "tf32", "f8f6f4", "i8")
_PLAIN = " ".join(f"kind::{kind}" for kind in _KINDS)
_USES = ("fill", "use", "lastuse", "discard")


class Mma(NamedTuple):
    """One issued instruction, as the tensor core will see it."""

    shape: InstructionDescriptor
    group: int
    cta: int  # rank of the CTA that issued it
    a: Any  # descriptor (int), or ("tmem", column) of A in tensor memory
    b: int
    lane: int
    column: int
    accumulate: bool
    disabled: tuple  # masks of output lanes that are not written
    where: Any  # Location: the thread that issued it
    ws: bool = False  # weight stationary: its own layouts of D and of A in tensor memory
    scales: tuple[int, ...] = ()  # addresses of the scale factors of A and B
    metadata: int = -1  # address of the indices of a sparse A
    shift: bool = False  # .ashift: row i of A is row i + 1 of what tensor memory holds
    footprint: Footprint | None = None  # where anybody listens

    name, text = "tcgen05.mma", "an MMA"  # type: ignore[misc]  # of the class, not fields

    @property
    def accumulates(self) -> bool:
        return self.accumulate

    @property
    def partial(self) -> bool:
        return any(self.disabled)

    def key(self) -> tuple:
        return (self.shape, self.group, self.cta, self.lane, self.column, self.disabled, self.ws, self.shift)

    @property
    def alone(self) -> bool:
        """Whether it never runs as one with others."""
        return bool(self.scales) or self.metadata >= 0

    def k_bytes(self, side: str) -> int:
        """Bytes of a row of operand "a" or "b"."""
        return K_BYTES * (2 if self.metadata >= 0 and side == "b" else 1)

    @property
    def copies(self) -> int:
        """Parts of N whose products come from different lanes, and so each from a copy of A."""
        return {"B": 2, "E": 2, "G": 4}.get(data_path(self.shape.m, self.group, self.ws), 1)


@unit(
    "tcgen05.mma .group.kind{.collector} d, a, b, descriptor{, disabled}, enable",
    "tcgen05.mma .group.scaled.block_scale{.vector}{.collector} d, a, b, descriptor, [sa], [sb], enable",
    "tcgen05.mma.sp .group.kind{.collector} d, a, b, [m], descriptor{, disabled}, enable",
    "tcgen05.mma.sp .group.scaled.block_scale{.vector}{.collector} d, a, b, [m], i, [sa], [sb], enable",
    "tcgen05.mma .group.kind.ashift{.last} d, [a], b, descriptor{, disabled}, enable",
    "tcgen05.mma.sp .group.kind.ashift{.last} d, [a], b, [m], descriptor{, disabled}, enable",
    "tcgen05.mma.ws .cta_group::1.kind{.weights} d, a, b, descriptor, enable{, mask}",
    kind=_PLAIN,
    scaled=" ".join(f"kind::{kind}" for kind in BLOCK_SCALED_KINDS),
    vector="scale_vec::1X scale_vec::2X scale_vec::4X block16 block32",
    collector=" ".join(f"collector::a::{use}" for use in _USES),
    last="collector::a::lastuse collector::a::discard",
    weights=" ".join(f"collector::b{n}::{use}" for n in range(4) for use in _USES),
    section="9.7.16.9.1",
    fire_and_forget=True,
    prepare=lambda args: _operands(*args),
)
def mma(instr):
    kind = next(m[6:] for m in instr.mods if m.startswith("kind::"))
    if isinstance(instr.operands[-1], Imm):
        raise refuse(instr, "tcgen05.mma with scale-input-d is not modelled")
    group, ws = 2 if "cta_group::2" in instr.mods else 1, "ws" in instr.mods
    sparse, shift = "sp" in instr.mods, "ashift" in instr.mods
    factors = _factors(instr, kind) if "block_scale" in instr.mods else 0

    known: dict[int, tuple] = {}  # instruction descriptor -> what it says

    def run(cluster, split, operands: Operands):
        d, a, b, descriptor, *masks = cluster.scalars(split, operands.slots)
        lane, column = split_address(d + operands.d_offset)
        if descriptor not in known:
            form = descriptor & 0xFFFF_FFFF, kind, group, ws, factors, sparse, shift
            known[descriptor] = form, *_decode(*form)
        form, shape, problem = known[descriptor]
        if shape is not None and operands.mask >= 0 and cluster.scalar(split, operands.mask):
            shape, problem = None, ("unsupported", "incomplete", "a zero-column mask is not modelled")
        if shape is None:
            cluster.reporter.add(*problem, "", split)
            return
        _check_issue(cluster, split, group)
        if operands.a_in_tmem:
            a = ("tmem", a + operands.a_offset & 0xFFFF_FFFF)
        disabled = tuple([mask & 0xFFFF_FFFF for mask in masks]) if masks else ()
        scales = [cluster.address(split, s) & 0xFFFF_FFFF for s in operands.scales]
        meta = cluster.address(split, operands.metadata) & 0xFFFF_FFFF if operands.metadata else -1
        enabled = cluster.predicate(split, operands.enable)
        footprint = None
        if cluster.bus.heard:
            operands_at = a, b, lane, column, tuple(scales), meta
            footprint = _footprint(form, pair(group, split.cta, cluster.ctas), operands_at)
        for where in each_lane(split):
            accumulate = enabled & where.mask != 0
            result = lane, column, accumulate, disabled
            op = Mma(shape, group, split.cta, a, b, *result, where, ws, tuple(scales), meta, shift, footprint)
            _issue(cluster, split, op)

    return run


def _factors(instr, kind: str) -> int:
    try:
        return vector_size(kind, instr.mods)
    except ValueError as error:
        raise refuse(instr, str(error)) from None


@dataclass(frozen=True)
class Operands:
    """Where an instruction finds what it needs."""

    slots: list[int]  # of D's address, A, B, the instruction descriptor, the masks of disabled lanes
    d_offset: int
    a_in_tmem: bool
    a_offset: int
    enable: int  # code of the predicate that says whether D is an input
    scales: tuple[MemArg, ...]  # addresses of scale factors
    mask: int  # slot of the zero-column mask of .ws, or -1
    metadata: MemArg | None  # address of the indices of a sparse A


def _operands(d: MemArg, a, b: int, *rest) -> Operands:
    metadata = rest[0] if isinstance(rest[0], MemArg) else None
    descriptor, *others = rest[1:] if metadata else rest
    masks = next((r for r in others if isinstance(r, tuple)), ())
    enable = next(r.code for r in others if isinstance(r, PredArg))
    scales = tuple(r for r in others if isinstance(r, MemArg))
    mask = others[-1] if isinstance(others[-1], int) else -1
    in_tmem = isinstance(a, MemArg)
    slots = [d.slot, a.slot if in_tmem else a, b, descriptor, *masks]
    return Operands(slots, d.offset, in_tmem, a.offset if in_tmem else 0, enable, scales, mask, metadata)


@functools.lru_cache(maxsize=256)
def _decode(
    bits: int, kind: str, group: int, ws: bool, factors: int, sparse: bool, shift: bool
) -> tuple[InstructionDescriptor | None, tuple[str, str, str]]:
    """The decoded instruction descriptor; (None, the finding) if it is not legal or not modelled."""
    try:
        if factors:
            shape: InstructionDescriptor = decode_block_scaled(bits, kind, factors, group)
        else:
            shape = decode_instruction_descriptor(bits, kind, group, ws)
    except ValueError as error:
        return None, ("descriptor", "error", str(error))
    except NotImplementedError as error:
        return None, ("unsupported", "incomplete", f"tcgen05.mma: {error} is not modelled")
    if shape.sparse != sparse:
        message = f"tcgen05.mma{'.sp' * sparse} with a descriptor whose bit 2 (sparse) is {shape.sparse:d}"
        return None, ("descriptor", "error", message)
    if shift and shape.m not in (128, 256):
        return None, ("descriptor", "error", f"tcgen05.mma.ashift with M={shape.m}; expected 128 or 256")
    what = "saturation" if shape.saturate else ""
    if sparse and shape.m // group != MODELLED_ROWS:
        what = f"a sparse A of {shape.m // group} rows in each CTA"
    if what:
        return None, ("unsupported", "incomplete", f"tcgen05.mma: {what} is not modelled")
    return shape, ("", "", "")


def _check_issue(cluster, split, group: int) -> None:
    if not split.alone:
        message = f"tcgen05.mma issued by {len(split.lanes)} lanes: the product is computed as many times"
        cluster.reporter.add("illegal", "error", message, CAUSES["mma-lanes"], split, key="mma-lanes")
    if group == 2 and cluster.ctas < 2:
        cluster.reporter.add("cluster", "error", "cta_group::2 in a kernel without CTA clusters", "", split)


def _issue(cluster, split, op: Mma) -> None:
    cluster.bus.tensor_issue(cluster, split, op)
    cluster.tensor_operations += 1
    if not cluster.dry:
        cluster.engine.submit(Work(("tensor", split.thread), _by_batch, "tcgen05.mma", _execute_all, op))


def _by_batch() -> None:
    """Never called: MMAs run by _execute_all."""
    raise AssertionError


def _execute_all(batch: list[Work]) -> None:
    """Consecutive MMAs of one thread: those that accumulate into the same D run as one."""
    ops: list[Any] = [work.op for work in batch]
    cluster, start, key = ops[0].where.cluster, 0, ops[0].key()
    for i, op in enumerate(ops[1:], 1):
        own = op.key()
        if not op.accumulate or own != key or op.alone:
            execute(cluster, ops[start:i])
            start, key = i, own
    execute(cluster, ops[start:])


@functools.lru_cache(maxsize=2048)
def _footprint(form: tuple, ranks: tuple[int, ...], operands: tuple) -> Footprint:
    """Of an instruction with these arguments of `_decode`; operands: A, B, lane and column of D, scales,
    metadata.
    """
    shape, (_, _, group, ws, _, _, shift) = _decode(*form)[0], form
    assert shape is not None  # a form that was issued
    a, b, lane, column, scales, meta = operands
    op = Mma(shape, group, ranks[0], a, b, lane, column, True, (), None, ws, scales, meta, shift)
    columns = [*scale_columns(op), *metadata_columns(op)]
    read = [r for rank in ranks for r in _cells_of_a(op, rank)]
    read += [Rectangle(rank, 0, LANES, first, count) for rank in ranks for first, count in columns]
    written = [
        Rectangle(rank, lane + first, rows, column + start, count)
        for rank in ranks
        for first, _, rows, start, _, count in result_blocks(shape.m, shape.n, group, ws)
    ]
    spans = [_operand_span(op, rank, side) for rank in ranks for side in "ab"]
    label = f"MMA {shape.m}x{shape.n} to column {column}"
    descriptors = tuple(bits for bits in (a, b) if isinstance(bits, int))
    reads = tuple(span for span in spans if span is not None)
    return Footprint(ranks, reads, tuple(read), tuple(written), (shape.m, shape.n), descriptors, label)


def _operand_span(op: Mma, rank: int, side: str) -> SharedSpan | None:
    """What is read of A or B in shared memory; None of what lies elsewhere, or has no legal descriptor."""
    bits, rows, mn, fmt, _ = _side(op, side)
    if isinstance(bits, tuple):
        return None
    try:
        return _span(rank, bits, rows, DECODERS[fmt].bytes, mn, op.k_bytes(side))
    except ValueError:
        return None  # reported where the operand is read


@functools.lru_cache(maxsize=2048)
def _span(rank: int, bits: int, rows: int, width: int, mn: bool, k_bytes: int) -> SharedSpan:
    chunks = operand_chunks((bits,), rows, width, mn, k_bytes=k_bytes)
    return SharedSpan(rank, chunks.index, chunks.first, chunks.last)


def _cells_of_a(op: Mma, rank: int) -> list[Rectangle]:
    """What is read of A in tensor memory."""
    if not isinstance(op.a, tuple):
        return []
    lanes = np.concatenate([operand_lanes(op, part) for part in range(op.copies)])
    return rectangles(rank, lanes, split_address(op.a[1])[1], K_BYTES // 4)


def pair(group: int, cta: int, ctas: int) -> tuple[int, ...]:
    """Ranks of the CTAs that take part: the CTA, or the pair of ranks that differ in the last bit."""
    return (cta,) if group == 1 else tuple(r for r in (cta & ~1, cta | 1) if r < ctas)


def execute(cluster, ops: list[Mma]) -> None:
    """Runs instructions that accumulate into the same D as one product with a longer K."""
    first = ops[0]
    ranks = pair(first.group, first.cta, cluster.ctas)
    cluster.bus.tensor_execute(cluster, ops)
    halves = [_operand(cluster, ops, rank, "b") for rank in ranks]
    b = halves[0] if len(halves) == 1 else np.concatenate(halves)
    for i, rank in enumerate(ranks):
        if first.alone:
            product = _special_product(cluster, first, rank, b)
        else:
            product = _product(cluster, ops, rank, b)
        if product is not None:
            write_result(cluster, first, rank, i, product)


def _special_product(cluster, op: Mma, rank: int, b: np.ndarray) -> np.ndarray | None:
    """Of a sparse A, of factors, or of both; None, with a finding, where what they need is not there."""
    a: np.ndarray | None = _operand(cluster, [op], rank, "a")
    if a is not None and op.metadata >= 0:
        a = dense(cluster, op, rank, a)
    if a is None:
        return None
    return scaled_product(cluster, op, rank, a, b) if op.scales else _multiplied(op, a, b)


def _product(cluster, ops: list[Mma], rank: int, b: np.ndarray) -> np.ndarray:
    """A times B for the rows of one CTA; parts of N take A from lanes of their own."""
    op = ops[0]
    if not isinstance(op.a, tuple) or op.copies == 1:
        return _multiplied(op, _operand(cluster, ops, rank, "a"), b)
    found = [
        _multiplied(op, _operand(cluster, ops, rank, "a", part), columns)
        for part, columns in enumerate(np.split(b, op.copies))
    ]
    return np.concatenate(found, axis=1)


def _multiplied(op: Mma, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if op.shape.d_type == "s32":
        return (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.int64).astype(np.int32)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity are results like others
        return a @ b.T


def _operand(cluster, ops: list[Mma], rank: int, which: str, part: int = 0) -> np.ndarray:
    """float32 (rows, K) of A or B as CTA `rank` holds it, the K steps of all `ops` side by side."""
    _, rows, mn, fmt, negate = _side(ops[0], which)
    sources: tuple[Any, ...] = tuple([op.a if which == "a" else op.b for op in ops])
    if isinstance(sources[0], tuple):
        found = [_from_tmem(cluster, rank, s[1], rows, op, part) for s, op in zip(sources, ops, strict=True)]
        values = np.concatenate(found, axis=1)
    else:
        values = _from_shared(cluster, rank, sources, rows, mn, fmt, ops[0], ops[0].k_bytes(which))
    return -values if negate else values


def _side(op: Mma, which: str) -> tuple:
    """(where it is, rows in a CTA, MN-major?, type, negated?) of A or B."""
    s = op.shape
    if which == "a":
        return op.a, s.m // op.group, s.a_mn_major, s.a_type, s.negate_a
    return op.b, s.n // op.group, s.b_mn_major, s.b_type, s.negate_b


def _from_shared(
    cluster, rank: int, descriptors: tuple, rows: int, mn: bool, fmt: str, op: Mma, k_bytes: int
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
        cluster.reporter.add("descriptor", "error", str(error), "", op.where)
        return np.zeros((rows, len(descriptors) * k_bytes // width), np.float32)
    return read_operand(cluster, rank, chunks, rows, fmt, mn)


def operand_lanes(op: Mma, part: int = 0) -> np.ndarray:
    """Lanes of tensor memory that hold the rows of A of one CTA, for a part of N; may pass the last one."""
    lane = operand_layout(op.shape.m, 1, 1, op.group, op.ws)[1][: op.shape.m // op.group, 0]
    lane = lane + part * (LANES // op.copies) + split_address(op.a[1])[0]
    return np.append(lane[1:], lane[-1]) if op.shift else lane


def _from_tmem(cluster, rank: int, address: int, rows: int, op: Mma, part: int = 0) -> np.ndarray:
    decoder = IN_TENSOR_MEMORY.get(op.shape.a_type) or DECODERS[op.shape.a_type]
    first, column = split_address(address)
    lanes, end = operand_lanes(op, part), column + K_BYTES // 4
    problem = ""
    if lanes[-1] >= LANES or end > COLUMNS:
        problem = f"A at lane {first}, column {column} passes the end of tensor memory"
    elif data_path(op.shape.m, op.group, op.ws) == "F" and first != op.lane:
        problem = f"A at lane {first}, D at lane {op.lane}: M=64 wants the same for both"
    if problem:
        hint = "with M=64 both start at lane 0, or both at lane 16 (PTX ISA 9.7.16.10.5)"
        cluster.reporter.add("illegal", "error", f"tcgen05.mma: {problem}", hint, op.where)
        return np.zeros((rows, K_BYTES // decoder.bytes), np.float32)
    cells = cluster.tmem[rank].cells[lanes, column:end]
    return decoder.decode(np.ascontiguousarray(cells).view(decoder.raw)).reshape(rows, -1)
