"""cp.async: copies of 4, 8 or 16 bytes a thread from global to shared memory (PTX ISA 9.7.9.25.3).

A copy reads and writes when the engine completes it. Its thread may rely on it after a wait_group that covers
it, other threads after a barrier behind that wait, or through an mbarrier (cp.async.mbarrier.arrive).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from ptxsim.isa.address_map import (
    FAULT_BOUNDS,
    FAULT_MISALIGNED,
    FAULT_OTHER_CTA,
    RANK_SHIFT,
    SHARED_BASE,
    SHARED_START,
)
from ptxsim.jit import bytecode as ml
from ptxsim.machine.async_queue import Work
from ptxsim.machine.mbarrier import MAX_COUNT
from ptxsim.machine.split import Wait
from ptxsim.units.mbarrier import find_barrier, guarded, place_of
from ptxsim.units.registry import check_mods, refuse, unit

# what `_check` finds -> (fault, is it the shared address?)
_FAULTS = {
    1: (FAULT_OTHER_CTA, True),
    2: (FAULT_MISALIGNED, True),
    3: (FAULT_BOUNDS, True),
    4: (FAULT_MISALIGNED, False),
    5: (FAULT_BOUNDS, False),
}


@dataclass(eq=False)
class Copy:
    """The copies of one executed instruction, one per lane of `lanes`."""

    mask: int
    lanes: np.ndarray
    groups: np.ndarray  # int64 (lanes,): number of the group of its thread that the copy belongs to
    targets: np.ndarray  # int64 (lanes,): window offsets in the CTA's shared memory
    sources: np.ndarray  # int64 (lanes,): global addresses
    sizes: np.ndarray  # int64 (lanes,): bytes read; the rest of `size` is written as zeros
    size: int
    waited: int = 0  # lanes that have waited for it
    done: bool = False
    token: object = None


@dataclass
class State:
    """What a warp has under way."""

    copies: list[Copy] = field(default_factory=list)  # not yet waited for by all their lanes
    committed: np.ndarray = field(default_factory=lambda: np.zeros(32, np.int64))  # groups closed, per lane


def state_of(cluster, split) -> State:
    """The warp's copies, oldest first."""
    return cluster.unit_state.setdefault(("cp.async", split.warp), State())


@njit(cache=True)
def _check(targets, sources, sizes, size, cta, shift, start, end, base, limit):
    """(what is wrong, lane index) of the first copy that is not legal, (0, 0) if all are.

    Cuts targets to window offsets, which lie in start .. end; sources in base .. limit.
    """
    for i in range(len(targets)):
        rank, offset = targets[i] >> shift, targets[i] & ((1 << shift) - 1)
        if rank != cta:
            return 1, i
        targets[i] = offset
        if offset % size:
            return 2, i
        if offset < start or offset + size > end:
            return 3, i
        if sizes[i] and sources[i] % size:
            return 4, i
        if sizes[i] and (sources[i] < base or sources[i] + sizes[i] > limit):
            return 5, i
    return 0, 0


@njit(cache=True)
def _move(shared, memory, targets, sources, sizes, size, base):
    for i in range(len(targets)):
        t, s = targets[i], sources[i] - base
        for b in range(sizes[i]):
            shared[t + b] = memory[s + b]
        for b in range(sizes[i], size):
            shared[t + b] = 0


@unit("cp.async.ca", "cp.async.cg", section="9.7.9.25.3.1")
def copy(instr):
    mods = check_mods(
        instr,
        {
            "async",
            "ca",
            "cg",
            "shared",
            "shared::cta",
            "global",
            "L2::cache_hint",
            "L2::64B",
            "L2::128B",
            "L2::256B",
        },
    )
    size = getattr(instr.operands[2], "bits", None)
    if size not in ((16,) if "cg" in mods else (4, 8, 16)):
        raise refuse(instr, "cp.async.ca copies 4, 8 or 16 bytes, cp.async.cg 16 (the size is a constant)")
    optional = len(instr.operands) - 3 - ("L2::cache_hint" in mods)

    def run(cluster, split, args):
        lanes = split.lanes
        sizes = np.full(len(lanes), size, np.int64)
        if optional:
            sizes = _sizes(cluster, split, args[3], sizes)
        op = Copy(
            split.mask,
            lanes,
            state_of(cluster, split).committed[lanes],
            cluster.addresses(split, args[0]) & 0xFFFF_FFFF,
            cluster.addresses(split, args[1]),
            sizes,
            size,
        )
        _issue(cluster, split, op)

    return run


def _sizes(cluster, split, arg, full: np.ndarray) -> np.ndarray:
    """Bytes that each lane reads: src-size, or none where the predicate ignore-src is true."""
    if hasattr(arg, "code"):
        ignored = (cluster.predicate(split, arg.code) >> split.lanes) & 1
        return np.where(ignored, 0, full)
    wanted = cluster.read(split, arg)[split.lanes].astype(np.int64) & 0xFFFF_FFFF
    if (wanted > full).any():
        cluster.reporter.add(
            "illegal",
            "error",
            f"cp.async with src-size {wanted.max()} of {full[0]} bytes",
            "src-size is at most cp-size",
            split,
            key="src-size",
        )
    return np.minimum(wanted, full)


def _issue(cluster, split, op: Copy) -> None:
    segment = _segment(cluster, split, op)
    if segment is None:
        return
    state = state_of(cluster, split)
    if cluster.checks:
        op.token = cluster.checks.cp_async_issue(cluster, split, *_logs(split, op))
    shared, (memory, base) = cluster.shared[split.cta], segment

    def finish():
        _move(shared, memory, op.targets, op.sources, op.sizes, op.size, base)
        op.done = True
        if cluster.checks:
            cluster.checks.cp_async_copy(cluster, op.token)
        cluster.wake(("cp.async", split.warp))

    if cluster.checks or not cluster.engine.eager:
        state.copies.append(op)
    if cluster.engine.eager:
        finish()
    else:
        cluster.engine.submit(Work(("cp.async", split.warp), finish, "cp.async", split))


def _segment(cluster, split, op: Copy) -> tuple[np.ndarray, int] | None:
    """(bytes, base address) that hold all sources; None, with a finding, if a copy is not legal.

    Lanes of one instruction that read different buffers are not modelled.
    """
    memory = cluster.launch.memory
    read = np.flatnonzero(op.sizes)
    found = memory.find(int(op.sources[read[0]])) if len(read) else 0
    base, end = memory.rows[found][:2] if found is not None else (0, 0)
    window = (split.cta, RANK_SHIFT, SHARED_START, cluster.launch.shared_end)
    wrong, at = _check(op.targets, op.sources, op.sizes, op.size, *window, base, end)
    if not wrong:
        return memory.arrays[found or 0], base
    lane, source = int(op.lanes[at]), int(op.sources[at])
    kind, shared = _FAULTS[wrong]
    if wrong == 5 and memory.find(source, int(op.sizes[at])) is not None:
        message = "a cp.async whose lanes read several buffers is not modelled"
        cluster.reporter.add("unsupported", "incomplete", message, "", split)
        return None
    mask = split.mask
    cluster.reporter.fault(cluster, split, kind, lane, int(op.targets[at]) if shared else source, 1)
    split.mask = mask
    return None


def _logs(split, op: Copy) -> tuple[np.ndarray, np.ndarray]:
    """The reads and the writes of a copy as rows of `Observer.accesses`."""
    rows = np.empty((2, len(op.lanes), 4), np.int64)
    rows[:, :, ml.LOG_ROW], rows[:, :, ml.LOG_THREAD] = split.row, split.warp * 32 + op.lanes
    rows[0, :, ml.LOG_PLACE], rows[0, :, ml.LOG_SIZE] = op.sources, 2 * op.sizes
    rows[1, :, ml.LOG_PLACE] = SHARED_BASE + (split.cta << RANK_SHIFT) + op.targets
    rows[1, :, ml.LOG_SIZE] = 2 * op.size + 1
    return rows[0][op.sizes > 0], rows[1]


# ---- groups ----


@unit("cp.async.commit_group", section="9.7.9.25.3.2")
def commit_group(instr):
    check_mods(instr, {"async", "commit_group"})

    def run(cluster, split, args):
        state_of(cluster, split).committed[split.lanes] += 1

    return run


@unit("cp.async.wait_group", section="9.7.9.25.3.3")
def wait_group(instr):
    check_mods(instr, {"async", "wait_group"})
    allowed = getattr(instr.operands[0], "bits", None)
    if allowed is None or allowed < 0:
        raise refuse(instr, "cp.async.wait_group takes a constant, the number of groups that may be pending")

    def run(cluster, split, args):
        return _wait(cluster, split, allowed)

    return run


@unit("cp.async.wait_all", section="9.7.9.25.3.3")
def wait_all(instr):
    check_mods(instr, {"async", "wait_all"})

    def run(cluster, split, args):
        return _wait(cluster, split, None)

    return run


def _wait(cluster, split, allowed: int | None):
    """Goes on when all groups but the youngest `allowed` are complete; None: all copies, committed or not."""
    state = state_of(cluster, split)
    limits = state.committed - allowed if allowed is not None else state.committed + 1
    needed = [op for op in state.copies if _concerns(op, split.mask, limits)]
    missing = sum(not op.done for op in needed)
    if missing:
        detail = {"allowed": allowed or 0, "pending": missing}
        return cluster.wait(split, Wait("group", ("cp.async", split.warp), detail))
    for op in needed:
        op.waited |= split.mask & op.mask
        if cluster.checks:
            cluster.checks.cp_async_wait(cluster, split, op.token)
    state.copies = [op for op in state.copies if op.waited != op.mask or not op.done]
    return None


def _concerns(op: Copy, mask: int, limits: np.ndarray) -> bool:
    """Whether a lane of `mask` has a copy in it whose group is older than its limit."""
    if op.mask == mask:
        return bool((op.groups < limits[op.lanes]).any())
    mine = (mask >> op.lanes) & 1
    return bool((mine & (op.groups < limits[op.lanes])).any())


# ---- mbarrier ----


@unit("cp.async.mbarrier.arrive", section="9.7.13.15.15")
def arrive(instr):
    mods = check_mods(instr, {"async", "mbarrier", "arrive", "noinc", "shared", "shared::cta", "b64"})
    generic = not {"shared", "shared::cta"} & mods
    counts = "noinc" not in mods

    def run(cluster, split, args):
        state = state_of(cluster, split)
        tokens = [op.token for op in state.copies if op.mask & split.mask]
        places = []
        for address in cluster.addresses(split, args[0]):
            place = place_of(cluster, split, int(address), generic)
            barrier = find_barrier(cluster, split, place, "cp.async.mbarrier.arrive")
            if barrier is not None:
                places.append(place)
                if counts:
                    _count_up(cluster, split, place, barrier)
        row, mask = split.row, split.mask

        def finish():
            split.row, split.mask = row, mask
            for place in places:
                _arrive(cluster, split, place, tokens)

        cluster.engine.submit(Work(("cp.async", split.warp), finish, "cp.async.mbarrier.arrive", split))

    return run


def _count_up(cluster, split, place, barrier) -> None:
    """Without .noinc the phase expects the arrival that the copies will make (PTX ISA 9.7.13.15.15)."""
    barrier.pending += 1
    if barrier.pending > MAX_COUNT:
        name = cluster.reporter.shared_name(place[1])
        cluster.reporter.add(
            "mbarrier", "error", f"{name}: more than {MAX_COUNT} pending arrivals", "", split
        )


def _arrive(cluster, split, place, tokens: list) -> None:
    barrier = find_barrier(cluster, split, place, "cp.async.mbarrier.arrive")
    if barrier is None:
        return
    if cluster.checks:
        for token in tokens:
            cluster.checks.async_arrive(cluster, place, token)
    guarded(cluster, split, place, barrier.arrive)
