"""cp.async: copies of 4, 8 or 16 bytes per thread from global to shared memory (PTX ISA 9.7.9.25.3).

A copy reads and writes when the engine completes it. Its thread may use the data after a wait_group that
covers the copy, other threads after a barrier that follows that wait, or through an mbarrier
(cp.async.mbarrier.arrive).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ptxsim.events.records import CopyArrival
from ptxsim.isa.address_map import FAULT_BOUNDS, FAULT_MISALIGNED, SPACE_SHARED
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit import bytecode
from ptxsim.jit.bytecode import CALLED_BLOCK, EAGER, SEG_BASE, SEG_HOST, WARPS_PER_CTA
from ptxsim.jit.called import ParameterBlock, called
from ptxsim.jit.compiled import compiled
from ptxsim.jit.intrinsics import column, lane_value, load8, load32, mask_of, room_for_lanes, store8, store32
from ptxsim.jit.loop_memory import own_offset, segment_of, set_word, window, within, word
from ptxsim.machine.async_queue import Work
from ptxsim.machine.checked_access import log_own, own_offsets
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.mbarrier import MAX_COUNT
from ptxsim.machine.split import Lanes, Split, Wait
from ptxsim.units.mbarrier import apply_count_change, find_barrier, place_of
from ptxsim.units.registry import FastForm, always, refuse, unit


@dataclass(eq=False)
class AsyncCopy:
    """The copies of one executed instruction, one per lane of `lanes`."""

    mask: int
    lanes: np.ndarray
    groups: np.ndarray  # int64 (lanes,): number of the copy's group in its thread
    targets: np.ndarray  # int64 (lanes,): window offsets in the CTA's shared memory
    sources: np.ndarray  # int64 (lanes,): global addresses
    sizes: np.ndarray  # int64 (lanes,): bytes read; the rest of `size` is written as zeros
    size: int
    waited: int = 0  # mask of lanes that have waited for it
    done: bool = False
    token: object = None


@dataclass
class State:
    """The copies of a warp."""

    copies: list[AsyncCopy] = field(default_factory=list)  # not yet waited for by all their lanes
    waited: dict = field(default_factory=dict)  # mask -> token of the last copies that its lanes waited for
    committed: np.ndarray = field(default_factory=lambda: np.zeros(32, np.int64))  # groups closed, per lane


def state_of(cluster: Cluster, split: Split) -> State:
    """The state of the split's warp; its copies are in order, oldest first."""
    return cluster.unit_state.setdefault(("cp.async", split.warp), State())


@compiled()
def _move(shared, memory, targets, sources, sizes, size, base):
    for i in range(len(targets)):
        t, s = targets[i], sources[i] - base
        for b in range(sizes[i]):
            shared[t + b] = memory[s + b]
        for b in range(sizes[i], size):
            shared[t + b] = 0


# ---- in the main loop, if there are no observers and copies complete at once ----

TARGET, TARGET_OFFSET, SOURCE, SOURCE_OFFSET, SIZE, READ, IGNORED = range(7)


@inner
def _bytes_read(block, predicates, registers, l):
    """How many bytes lane l reads: src-size, or 0 if the predicate ignore-src is true."""
    if word(block, IGNORED) >= 0 and (mask_of(predicates, word(block, IGNORED)) >> l) & 1:
        return 0
    if word(block, READ) >= 0:
        return np.int64(lane_value(registers, word(block, READ), l) & np.uint64(0xFFFF_FFFF))
    return word(block, SIZE)


@called
def copy_at_once(row, m, warp, registers, predicates, control):
    """cp.async of the lanes m, if all sources are in one array."""
    block = column(row, CALLED_BLOCK)
    targets, sources = np.int64(room_for_lanes()), np.int64(room_for_lanes())
    if not word(control, EAGER):
        return 0
    size, segment, cta = word(block, SIZE), 0, warp // word(control, WARPS_PER_CTA)
    for l in range(32):
        if (m >> l) & 1:
            address = np.int64(lane_value(registers, word(block, TARGET), l)) + word(block, TARGET_OFFSET)
            source = np.int64(lane_value(registers, word(block, SOURCE), l)) + word(block, SOURCE_OFFSET)
            read = _bytes_read(block, predicates, registers, l)
            if read and segment == 0:
                segment = segment_of(control, source, read)
            legal = read == 0 or (segment != 0 and within(segment, source, read) and source & (size - 1) == 0)
            offset = own_offset(address, size, SPACE_SHARED, cta, control)
            if offset < 0 or read > size or not legal:
                return 0
            set_word(targets, l, window(cta, control) + offset)
            set_word(sources, l, source)
    away = word(segment, SEG_HOST) - word(segment, SEG_BASE) if segment != 0 else 0
    for l in range(32):
        if (m >> l) & 1:
            read = _bytes_read(block, predicates, registers, l)
            for b in range(0, read & -4, 4):
                store32(np.uint64(word(targets, l) + b), load32(np.uint64(word(sources, l) + away + b)))
            for b in range(read & -4, size):
                byte = load8(np.uint64(word(sources, l) + away + b)) if b < read else np.uint64(0)
                store8(np.uint64(word(targets, l) + b), byte)
    return 1


@called
def nothing_pending(row, m, warp, registers, predicates, control):
    """Commits and waits, if every copy completes before the next instruction: nothing to do."""
    return word(control, EAGER)


def _fast_copy(instr, args: tuple, unset) -> ParameterBlock:
    rest = args[3:] if len(instr.operands) - 3 - ("L2::cache_hint" in instr.mods) else ()
    ignored, read = (rest[0].code, -1) if rest and hasattr(rest[0], "code") else (-1, rest[0] if rest else -1)
    (target, source), size = args[:2], instr.operands[2].bits
    return ParameterBlock(target.slot, target.offset, source.slot, source.offset, size, read, ignored)


_QUIET_GROUP = FastForm(lambda instr, args, unset: ParameterBlock(0), called=nothing_pending)


@unit(
    "cp.async.ca .own.global{.hint}{.prefetch} [d], [s], size{, n}{, policy}",
    "cp.async.cg .own.global{.hint}{.prefetch} [d], [s], size{, n}{, policy}",
    section="9.7.9.25.3.1",
    fast=FastForm(_fast_copy, called=copy_at_once),
)
def copy(instr):
    mods = set(instr.mods)
    size = getattr(instr.operands[2], "bits", None)
    if size is None or size not in ((16,) if "cg" in mods else (4, 8, 16)):
        raise refuse(instr, "cp.async.ca copies 4, 8 or 16 bytes, cp.async.cg 16 (the size is a constant)")
    optional = len(instr.operands) - 3 - ("L2::cache_hint" in mods)

    def run(cluster: Cluster, split: Split, args):
        targets = own_offsets(cluster, split, cluster.addresses(split, args[0]), size)
        if targets is not None:
            sizes = np.full(len(split.lanes), size, np.int64)
            if optional:
                sizes = _sizes(cluster, split, args[3], sizes)
            groups, sources = (
                state_of(cluster, split).committed[split.lanes],
                cluster.addresses(split, args[1]),
            )
            _issue(cluster, split, AsyncCopy(split.mask, split.lanes, groups, targets, sources, sizes, size))

    return run


def _sizes(cluster: Cluster, split: Split, arg, full: np.ndarray) -> np.ndarray:
    """Bytes that each lane reads: src-size, or 0 if the predicate ignore-src is true."""
    if hasattr(arg, "code"):
        ignored = (cluster.predicate(split, arg.code) >> split.lanes) & 1
        return np.where(ignored, 0, full)
    wanted = cluster.read(split, arg)[split.lanes].astype(np.int64) & 0xFFFF_FFFF
    if (wanted > full).any():
        message = f"cp.async with src-size {wanted.max()} of {full[0]} bytes"
        hint = "src-size must be at most cp-size"
        cluster.reporter.add("illegal", "error", message, hint, split, key="src-size")
    return np.minimum(wanted, full)


def _issue(cluster: Cluster, split: Split, op: AsyncCopy) -> None:
    segment = _segment(cluster, split, op)
    if segment is None:
        return
    state = state_of(cluster, split)
    if cluster.bus.heard:
        op.token = cluster.bus.cp_async_issue(cluster, split, *_logs(cluster, split, op))
    shared, (memory, base) = cluster.shared[split.cta], segment

    def finish():
        _move(shared, memory, op.targets, op.sources, op.sizes, op.size, base)
        op.done = True
        cluster.bus.cp_async_copy(cluster, op.token)
        cluster.wake(("cp.async", split.warp))

    if cluster.bus.heard or not cluster.engine.eager:
        state.copies.append(op)
    if cluster.engine.eager:
        finish()
    else:
        cluster.engine.submit(Work(("cp.async", split.warp), finish, "cp.async"))


def _segment(cluster: Cluster, split: Split, op: AsyncCopy) -> tuple[np.ndarray, int] | None:
    """(bytes, base address) of the array with all sources; None, with a finding, if a copy is not legal.

    Lanes of one instruction that read different buffers are not modelled.
    """
    memory = cluster.launch.memory
    read = np.flatnonzero(op.sizes)
    if not len(read):
        return memory.arrays[0], 0
    sources, sizes = op.sources[read], op.sizes[read]
    found = memory.find(int(sources[0]))
    base, end = memory.rows[found][:2] if found is not None else (0, 0)
    for code, wrong in (
        (FAULT_MISALIGNED, sources % op.size != 0),
        (FAULT_BOUNDS, (sources < base) | (sources + sizes > end)),
    ):
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            _not_legal(cluster, split, op, int(read[at]), code)
            return None
    assert found is not None  # otherwise all copies would be out of bounds
    return memory.arrays[found], base


def _not_legal(cluster: Cluster, split: Split, op: AsyncCopy, at: int, code: int) -> None:
    source, size = int(op.sources[at]), int(op.sizes[at])
    if code == FAULT_BOUNDS and cluster.launch.memory.find(source, size) is not None:
        message = "a cp.async whose lanes read several buffers is not modelled"
        cluster.reporter.add("unsupported", "incomplete", message, "", split)
        return
    cluster.reporter.fault(split.at(1 << int(op.lanes[at])), code, source, 1)


def _logs(cluster: Cluster, split: Split, op: AsyncCopy) -> tuple[np.ndarray, np.ndarray]:
    """The reads and the writes of a copy, as rows for `Observer.accesses`."""
    writes = log_own(cluster, split, op.lanes, op.targets, op.size)
    reads = writes.copy()
    reads[:, bytecode.LOG_PLACE], reads[:, bytecode.LOG_SIZE] = op.sources, 2 * op.sizes
    writes[:, bytecode.LOG_SIZE] += 1
    return reads[op.sizes > 0], writes


# ---- groups ----


@unit("cp.async.commit_group", section="9.7.9.25.3.2", fast=_QUIET_GROUP)
@always
def commit_group(cluster: Cluster, split: Split, args):
    state_of(cluster, split).committed[split.lanes] += 1


@unit("cp.async.wait_group n", section="9.7.9.25.3.3", fast=_QUIET_GROUP)
def wait_group(instr):
    allowed = getattr(instr.operands[0], "bits", None)
    if allowed is None or allowed < 0:
        raise refuse(instr, "cp.async.wait_group takes a constant, the number of groups that may be pending")

    def run(cluster: Cluster, split: Split, args):
        return _wait(cluster, split, allowed)

    return run


@unit("cp.async.wait_all", section="9.7.9.25.3.3", fast=_QUIET_GROUP)
@always
def wait_all(cluster: Cluster, split: Split, args):
    return _wait(cluster, split, None)


def _wait(cluster: Cluster, split: Split, allowed: int | None):
    """Waits until all groups but the newest `allowed` are complete; None: all copies, committed or not."""
    state = state_of(cluster, split)
    limits = state.committed - allowed if allowed is not None else state.committed + 1
    needed = [(op, _covered(op, split.mask, limits)) for op in state.copies]
    needed = [(op, covered) for op, covered in needed if covered]
    missing = sum(not op.done for op, _ in needed)
    if missing:
        detail = {"allowed": allowed or 0, "pending": missing}
        return cluster.wait(split, Wait("group", ("cp.async", split.warp), detail))
    for op, covered in needed:
        op.waited |= covered
        cluster.bus.cp_async_wait(cluster, split.at(covered), op.token)
    state.waited |= {op.mask: op.token for op in state.copies if op.waited == op.mask and op.done}
    state.copies = [op for op in state.copies if op.waited != op.mask or not op.done]
    return None


def _covered(op: AsyncCopy, mask: int, limits: np.ndarray) -> int:
    """Those lanes of `mask` whose copy is in a group below their limit; groups are counted per thread."""
    older = op.groups < limits[op.lanes]
    if older.all():
        return op.mask & mask
    return sum(1 << int(lane) for lane in op.lanes[older]) & mask


# ---- mbarrier ----


@unit("cp.async.mbarrier.arrive {.noinc}{.own}.b64 [bar]", section="9.7.13.15.15", signals="")
def arrive(instr):
    mods = set(instr.mods)
    generic = not {"shared", "shared::cta"} & mods
    counts = "noinc" not in mods

    def run(cluster: Cluster, split: Split, args):
        state = state_of(cluster, split)
        tokens = [
            token for mask, token in state.waited.items() if mask & split.mask
        ]  # complete, still tracked
        tokens += [op.token for op in state.copies if op.mask & split.mask]
        places = []
        for lane, address in zip(split.lanes.tolist(), cluster.addresses(split, args[0]), strict=True):
            place = place_of(cluster, split, int(address), generic)
            barrier = find_barrier(cluster, split, place, "cp.async.mbarrier.arrive")
            if place is not None and barrier is not None:
                places.append((lane, place))
                if counts:
                    _count_up(cluster, split, place, barrier)
        where, arrival = split.at(), CopyArrival(tuple([place for _, place in places]), counts)
        cluster.bus.cp_async_signal(cluster, split, arrival)

        def finish():
            for lane, place in places:
                _arrive(cluster, where.at(1 << lane), place, tokens, arrival)

        cluster.engine.submit(Work(("cp.async", split.warp), finish, "cp.async.mbarrier.arrive"))

    return run


def _count_up(cluster: Cluster, split: Split, place, barrier) -> None:
    """Without .noinc: adds the arrival of the copies to the pending count of the phase (9.7.13.15.15)."""
    if not barrier.expect_one_more():
        name = cluster.reporter.shared_name(place[1])
        cluster.reporter.add(
            "mbarrier", "error", f"{name}: more than {MAX_COUNT} pending arrivals", "", split
        )


def _arrive(cluster: Cluster, split: Lanes, place, tokens: list, arrival: CopyArrival) -> None:
    barrier = find_barrier(cluster, split, place, "cp.async.mbarrier.arrive")
    if barrier is None:
        return
    cluster.bus.cp_async_arrive(cluster, split, place, tokens, arrival)
    apply_count_change(cluster, split, place, barrier.arrive)
