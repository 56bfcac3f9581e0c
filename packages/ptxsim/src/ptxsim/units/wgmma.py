"""wgmma (PTX ISA 9.7.15): matrix products of a warpgroup, asynchronous, accumulators in registers.

An instruction runs once all four warps have issued it. From the issue until it completes, its accumulator
registers hold marks (signalling NaNs that name accumulator and register), so that a read before the wait
shows, and a register with a plain copy of an accumulator still receives its value. A in registers is read at
the issue.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptxsim.events.records import Operand, SharedSpan
from ptxsim.isa.address_map import SHARED_START
from ptxsim.isa.layouts.swizzle import Mode
from ptxsim.isa.number_formats import DECODERS
from ptxsim.jit import bytecode
from ptxsim.jit.compiled import compiled
from ptxsim.jit.host import address_in_host
from ptxsim.machine.async_queue import Work
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Origin, Split, Wait
from ptxsim.units.matrix_operands import K_BYTES, Chunks, operand_chunks
from ptxsim.units.registry import FastForm, always, refuse, slots_of, unit
from ptxsim.units.sparse_a import report_undefined
from ptxsim.units.warp import WHOLE_WARP_DONE, require_aligned, require_set
from ptxsim.units.wgmma_form import BOXES, SETS, WgmmaForm, decode_form
from ptxsim.units.wgmma_group import fast_group, whole_group
from ptxsim.units.wgmma_product import block_of_registers, multiply_now

# ---- accumulators ----

_STRIDES = (
    "are the descriptor's start and its offsets, in units of 16 bytes, those of the tile, and is the operand "
    "transposed only if it is stored so?"
)
_MARK = 0x7F80_0000  # a mark is _MARK | serial << 7 | register


@dataclass(eq=False)
class Accumulator:
    """D of one warp while instructions on it are pending."""

    serial: int
    values: np.ndarray  # uint64 (registers, 32): the real values of the registers
    pending: int = 0

    @property
    def mark(self) -> int:
        return _MARK | self.serial << 7


@dataclass(eq=False)
class WgmmaPart:
    """One warp's share of an instruction."""

    where: Origin
    form: WgmmaForm
    accumulator: Any  # Accumulator; None in a dry run
    group: int  # number of its wgmma-group in the warp
    a: Any  # descriptor, or uint64 (4, 32) registers
    b: int
    accumulate: bool
    indices: Any = None  # uint64 (1, 32): the register with the indices of a sparse A
    token: object = None


@dataclass(eq=False)
class WgmmaOperation:
    """One instruction of a warpgroup."""

    parts: list[WgmmaPart] = field(default_factory=list)
    done: bool = False


@dataclass
class Warp:
    """The pending instructions of a warp."""

    parts: list[tuple[WgmmaPart, WgmmaOperation]] = field(default_factory=list)
    accumulators: dict[int, Accumulator] = field(default_factory=dict)  # by serial
    committed: int = 0
    issued: int = 0
    fenced: bool = False
    last: dict[tuple, np.ndarray] = field(default_factory=dict)  # slots -> last results of the tensor core


def _warp(cluster: Cluster, split: Split) -> Warp:
    return cluster.unit_state.setdefault(("wgmma", split.warp), Warp())


@compiled()
def _deliver(R, mark, values):
    """Replaces every mark of one accumulator in a warp's registers by its value; values: (registers, 32).

    A kernel that computes with marks, which is an error, may produce numbers that look like marks of
    registers beyond the accumulator; these stay.
    """
    for s in range(R.shape[0]):
        for l in range(32):
            register = R[s, l] - mark
            if register < np.uint64(len(values)):
                R[s, l] = values[register, l]


def _open(
    cluster: Cluster, split: Split, warp: Warp, slots: list[int], form: WgmmaForm, accumulate: bool
) -> Accumulator:
    """The accumulator of the registers of D: the pending one whose marks they hold, or a new one."""
    held = cluster.registers[split.warp, slots]
    first = int(held[0, split.leader])
    serial = (first ^ _MARK) >> 7
    found = warp.accumulators.get(serial)
    if found is None:
        if cluster.bus.heard:
            if accumulate:
                require_set(cluster, split, slots)
            _check_fence(cluster, split, warp, slots, held if accumulate else None)
        serial = cluster.unit_state.get("wgmma-serial", 0) % 0x7FFF + 1
        cluster.unit_state["wgmma-serial"] = serial
        found = Accumulator(serial, held)
        warp.accumulators[serial] = found
        cluster.control[bytecode.MARKED] += 1
        marks = np.uint64(found.mark) | np.arange(len(slots), dtype=np.uint64)
        cluster.registers[split.warp, slots] = marks[:, None]
    found.pending += 1
    return found


def _check_fence(
    cluster: Cluster, split: Split, warp: Warp, slots: list[int], held: np.ndarray | None
) -> None:
    """Reports a missing wgmma.fence: it is needed after other instructions write the registers and before the
    tensor core uses them, and always before a warp's first wgmma. held: values that D accumulates onto.
    """
    known = warp.last.get(tuple(slots))
    changed = held is not None and known is not None and not np.array_equal(known, held)
    if changed or not warp.fenced:
        message = "wgmma.mma_async accumulates into registers that were written with no wgmma.fence after"
        if held is None:
            message = "the first wgmma.mma_async of a warp comes before its first wgmma.fence"
        hint = "execute wgmma.fence.sync.aligned after the last write of accumulators, before the first wgmma"
        cluster.reporter.add("race", "error", message, hint, split, key="wgmma-fence")


# ---- wgmma.mma_async ----


@unit(
    *BOXES,
    **SETS,
    writes=(0,),
    async_destination=True,
    section="9.7.15.5.2",
    fast=FastForm(fast_group, called=whole_group, gathers=True),
)
def mma_async(instr):
    form = decode_form(instr)
    constant = getattr(instr.operands[form.scale], "bits", None)

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        warp = _warp(cluster, split)
        if cluster.dry:
            _only_tell(cluster, split, warp, form)
            return
        slots = list(slots_of(args[0]))
        enabled = (
            bool(constant)
            if constant is not None
            else bool(cluster.predicate(split, args[form.scale].code) & 1)
        )
        a = (
            cluster.registers[split.warp, list(args[1])]
            if form.in_registers
            else _uniform(cluster, split, args[1])
        )
        b = _uniform(cluster, split, args[2])
        accumulator = _open(cluster, split, warp, slots, form, enabled)
        indices = cluster.registers[split.warp, [args[3]]] if form.sparse else None
        part = WgmmaPart(split.at(), form, accumulator, warp.committed, a, b, enabled, indices)
        part.token = cluster.bus.wgmma_issue(cluster, split, form.n, form.k)
        _join(cluster, split, warp, part)

    return run


def _only_tell(cluster: Cluster, split: Split, warp: Warp, form: WgmmaForm) -> None:
    """Issues a warp's share in a dry run: informs observers, multiplies nothing."""
    part = WgmmaPart(split.at(), form, None, warp.committed, None, 0, True)
    part.token = cluster.bus.wgmma_issue(cluster, split, form.n, form.k)
    cluster.tensor_operations += split.warp % 4 == 0
    warp.parts.append((part, WgmmaOperation([part], done=True)))


def _uniform(cluster: Cluster, split: Split, slot: int) -> int:
    """A descriptor, which must be the same in all lanes; adds a finding if it is not."""
    values = cluster.read(split, slot)
    if cluster.bus.heard and (values != values[0]).any():
        message = "lanes of a warp give different matrix descriptors to one wgmma"
        hint = "compute descriptors from values that are the same in all threads"
        cluster.reporter.add("collective", "error", message, hint, split)
    return int(values[0])


def _join(cluster: Cluster, split: Split, warp: Warp, part: WgmmaPart) -> None:
    """Adds a warp to the instruction of its warpgroup; the fourth one starts it."""
    number = split.warp % cluster.warps_per_cta // 4
    if 4 * number + 4 > cluster.warps_per_cta:
        message = f"wgmma in a warpgroup of {cluster.warps_per_cta % 4} warps"
        hint = "a warpgroup is four warps, and the number of the first is a multiple of four"
        cluster.reporter.add("collective", "error", message, hint, split, key="warpgroup")
    key = ("wgmma-group", split.cta, number)
    operations = cluster.unit_state.setdefault(key, {})
    number = warp.issued
    warp.issued += 1
    operation = operations.setdefault(number, WgmmaOperation())
    operation.parts.append(part)
    warp.parts.append((part, operation))
    if operation.parts[0].where.row != part.where.row:
        message = "warps of a warpgroup execute different wgmma instructions"
        hint = "all four warps must execute the same wgmma instructions in the same order"
        cluster.reporter.add("collective", "error", message, hint, split)
    if len(operation.parts) < 4:
        return
    del operations[number]
    cluster.tensor_operations += 1
    work = Work((*key, "queue"), lambda: _execute(cluster, operation), "wgmma.mma_async")
    cluster.engine.submit(work)


def _execute(cluster: Cluster, operation: WgmmaOperation) -> None:
    parts = sorted(operation.parts, key=lambda p: p.where.warp)
    first, form = parts[0], parts[0].form
    a_chunks = None if form.in_registers else _chunks(cluster, first, first.a, 64, form.a, form.a_mn)
    k_bytes = K_BYTES << bool(form.sparse)
    b_chunks = _chunks(cluster, first, first.b, form.n, form.b, form.b_mn, k_bytes)
    for i, part in enumerate(parts):
        for span in _share(part.where.cta, a_chunks, form.a_mn, b_chunks, i):
            cluster.bus.wgmma_read(cluster, part.token, span)
    if cluster.bus.heard:
        operands = _operands(first.where.cta, form, a_chunks, b_chunks)
        fresh = not any(p.accumulate and p.accumulator.values.any() for p in parts)
        into = first.where.warp, slots_of(cluster.program.args[first.where.row][0])
        cluster.bus.wgmma_product(cluster, first.where, operands, into, fresh)
    _multiply(cluster, parts)
    for part in parts:
        _give_back(cluster, part)
    operation.done = True
    for part in parts:
        cluster.wake(("wgmma", part.where.warp))


def _multiply(cluster: Cluster, parts: list[WgmmaPart]) -> None:
    form, rank = parts[0].form, parts[0].where.cta
    accumulate = sum(part.accumulate << i for i, part in enumerate(parts))
    files = np.array([address_in_host(part.accumulator.values) for part in parts], np.int64)
    block, indices, found = block_of_registers(form).address, files, np.zeros(1, np.int64)
    if form.sparse:
        indices = np.array([address_in_host(part.indices) for part in parts], np.int64)
        found = np.zeros(64 * form.sparse.chunks, np.int64)
    a, a_files = parts[0].a, files
    if form.in_registers:
        a, a_files = 0, np.array([address_in_host(part.a) for part in parts], np.int64)
    window, limit = int(cluster.cta_table[rank, bytecode.CT_SHARED]), cluster.launch.shared_end
    a_bits, b_bits = _signed(a), _signed(parts[0].b)
    at = address_in_host(a_files), address_in_host(files), address_in_host(indices), address_in_host(found)
    if not multiply_now(block, window, limit, a_bits, b_bits, *at, accumulate):
        for part in parts:
            part.accumulator.values *= np.uint64(part.accumulate)  # as if the product were zero
    if form.sparse:
        report_undefined(cluster, parts[0].where, form.sparse, found)


def _signed(bits: int) -> int:
    return bits - (bits >> 63 << 64)


def _give_back(cluster: Cluster, part: WgmmaPart) -> None:
    """Counts an instruction as done; after the last one on an accumulator, writes its registers."""
    target = part.accumulator
    target.pending -= 1
    if target.pending:
        return
    warp = cluster.unit_state[("wgmma", part.where.warp)]
    del warp.accumulators[target.serial]
    cluster.control[bytecode.MARKED] -= 1
    _deliver(cluster.registers[part.where.warp], np.uint64(target.mark), target.values)
    if cluster.bus.heard:
        warp.last[slots_of(cluster.program.args[part.where.row][0])] = target.values


@functools.lru_cache(maxsize=16384)  # 8 CTAs, 2 warpgroups, 7 stages of 4 products: 1,792
def _share(rank: int, a: Chunks | None, a_mn: bool, b: Chunks | None, number: int) -> list[SharedSpan]:
    """The shared memory that warp `number` of a warpgroup reads, its 16 rows of A and all of B: one span for
    each swizzle that descriptors name.
    """
    read: dict[Mode, list[np.ndarray]] = {}
    if a is not None:
        read[a.swizzle] = [np.split(a.index.T if a_mn else a.index, 4)[number].ravel()]
    if b is not None:
        read.setdefault(b.swizzle, []).append(b.index.ravel())
    return [SharedSpan.of(rank, np.unique(np.concatenate(i)), mode) for mode, i in read.items()]


@functools.lru_cache(maxsize=4096)
def _operands(rank: int, form: WgmmaForm, a: Chunks | None, b: Chunks | None) -> tuple[Operand, ...]:
    found = []
    if a is not None:
        found.append(Operand("a", rank, a.index, form.a, 64, form.a_mn))
    if b is not None:
        found.append(Operand("b", rank, b.index, form.b, form.n, form.b_mn))
    return tuple(found)


def _chunks(
    cluster: Cluster, part: WgmmaPart, bits: int, rows: int, kind: str, mn: bool, k_bytes: int = K_BYTES
) -> Chunks | None:
    """The 16-byte chunks that a descriptor points to; None, with a finding, if it is not legal."""
    try:
        width = DECODERS[kind].bytes if kind in DECODERS else 1  # b1: whole bytes
        chunks = operand_chunks((bits,), rows, width, mn, "sm_90", k_bytes)
    except ValueError as error:
        _report(cluster, part, "descriptor", str(error))
        return None
    if chunks.first < SHARED_START or chunks.last >= cluster.launch.shared_end:
        reach, window = (
            f"{chunks.first} .. {chunks.last}",
            f"{SHARED_START} .. {cluster.launch.shared_end - 1}",
        )
        message = f"the descriptor 0x{bits:016x} reaches bytes {reach} of the window {window}"
        _report(cluster, part, "out-of-bounds", message, _STRIDES)
        return None
    return chunks


def _report(cluster: Cluster, part: WgmmaPart, kind: str, message: str, hint: str = "") -> None:
    cluster.reporter.add(kind, "error", f"wgmma.mma_async: {message}", hint, part.where)


# ---- fence, groups ----


@unit("wgmma.fence .sync.aligned", section="9.7.15.7.1", fast=WHOLE_WARP_DONE)
@always
def fence(cluster: Cluster, split: Split, args):
    require_aligned(cluster, split)
    warp = _warp(cluster, split)
    warp.fenced = True
    warp.last.clear()
    cluster.bus.wgmma_fence(cluster, split)


@unit("wgmma.commit_group .sync.aligned", section="9.7.15.7.2", fast=WHOLE_WARP_DONE)
@always
def commit_group(cluster: Cluster, split: Split, args):
    require_aligned(cluster, split)
    _warp(cluster, split).committed += 1


@unit("wgmma.wait_group .sync.aligned n", section="9.7.15.7.3", fast=WHOLE_WARP_DONE)
def wait_group(instr):
    allowed = getattr(instr.operands[0], "bits", None)
    if allowed is None or allowed < 0:
        raise refuse(instr, "wgmma.wait_group takes a constant, the number of groups that may be pending")

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        warp = _warp(cluster, split)
        needed = [(part, op) for part, op in warp.parts if part.group < warp.committed - allowed]
        missing = sum(not op.done for _, op in needed)
        if missing:
            first = next(op for _, op in needed if not op.done)
            detail = {"pending": missing, "parts": first.parts}
            return cluster.wait(split, Wait("wgmma", ("wgmma", split.warp), detail))
        warp.parts = warp.parts[len(needed) :]
        for part, _ in needed:
            cluster.bus.wgmma_wait(cluster, split, part.token)
        return None

    return run
