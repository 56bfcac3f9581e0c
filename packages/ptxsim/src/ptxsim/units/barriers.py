"""CTA barriers (bar, barrier) and cluster barriers (PTX ISA 9.7.13.1, 9.7.13.3)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ptxsim.events import views
from ptxsim.events.records import BarArrival
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit import bytecode
from ptxsim.jit.intrinsics import lane_value, mask_of
from ptxsim.jit.loop_batch import batch_split, batch_state, lowest_lane, set_batch_state
from ptxsim.jit.loop_memory import set_word, word
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split, Wait
from ptxsim.units.registry import FastForm, unit
from ptxsim.units.warp import require_aligned

# ---- bar, barrier ----


@dataclass
class CtaBarrier:
    """One of the 16 barriers of a CTA."""

    arrived: int = 0  # threads that have arrived
    expected: int | None = None  # threads; None: all of the CTA
    waiting: list = field(default_factory=list)  # (split, lanes)
    votes: list = field(default_factory=list)  # for .red: (split, lanes, mask of true, mode, target)
    partial: dict = field(default_factory=dict)  # warp -> lanes that arrived, while others have yet to arrive
    generation: int = 0


def barrier_of_cta(cluster: views.Cluster, cta: int, number: int) -> CtaBarrier:
    return cluster.unit_state.setdefault(("bar", cta, number), CtaBarrier())


@inner
def _barrier_of(control, g, kind):
    """Number of the CTA barrier at which split g, a whole warp, waits in the batch; -1 if there is none."""
    split = word(control, bytecode.SP_PTR) + bytecode.SPLIT_BYTES * g
    w, mask = word(split, bytecode.SP_WARP), word(split, bytecode.SP_MASK)
    row = word(control, bytecode.CODE_PTR) + bytecode.ROW_BYTES * word(split, bytecode.SP_PC)
    if batch_state(control, g) != bytecode.STANDS:
        return -1
    if word(row, bytecode.OP) != bytecode.UNIT or word(row, bytecode.UNIT_FORM) != kind:
        return -1
    predicates = np.uint64(word(control, bytecode.P_PTR) + w * word(control, bytecode.P_STRIDE))
    guard = mask_of(predicates, word(row, bytecode.GUARD))
    if mask != word(word(control, bytecode.ALIVE_PTR), w) or mask & ~guard:
        return -1
    registers = np.uint64(word(control, bytecode.R_PTR) + w * word(control, bytecode.R_STRIDE))
    number = np.int64(lane_value(registers, word(row, bytecode.SRC0), lowest_lane(mask)))
    return number if number < 16 else -1


@inner
def open_barriers(control, kind):
    """Opens a barrier in every CTA whose warps are all at that barrier; False if there is no such CTA."""
    opened = False
    per_cta = word(control, bytecode.WARPS_PER_CTA)
    for cta in range(word(control, bytecode.CLUSTER_SIZE)):
        missing = 0
        for w in range(cta * per_cta, (cta + 1) * per_cta):
            missing += word(word(control, bytecode.ALIVE_PTR), w) != 0
        number = -1
        for i in range(word(control, bytecode.BATCH)):
            g = batch_split(control, i)
            if g // 32 // per_cta == cta:
                here = _barrier_of(control, g, kind)
                if here >= 0 and (number < 0 or here == number):
                    number = here
                    missing -= 1
        if number < 0 or missing:
            continue
        opened = True
        for i in range(word(control, bytecode.BATCH)):
            g = batch_split(control, i)
            if g // 32 // per_cta == cta and _barrier_of(control, g, kind) == number:
                split = word(control, bytecode.SP_PTR) + bytecode.SPLIT_BYTES * g
                set_word(split, bytecode.SP_PC, word(split, bytecode.SP_PC) + 1)
                set_word(control, bytecode.EXECUTED, word(control, bytecode.EXECUTED) + 1)
                set_batch_state(control, g, bytecode.MOVING)
    return opened


def _fast_bar(instr, args: tuple) -> dict | None:  # type: ignore[return]  # None for other operands
    """The columns for a barrier of the whole CTA: no thread count, no vote, no arrival without a wait."""
    match args:
        case (int(number),) if not {"arrive", "red"} & set(instr.mods):
            return {"src0": number}


_BARRIERS = (  # .cta comes first
    *(("bar", ""), ("bar.cta", "")),
    *(("barrier", "{.aligned}"), ("barrier.cta", "{.aligned}")),
)


@unit(
    *(
        " ".join(box.format(name=name, may=may).split())
        for box in (
            "{name}.sync {may} a{{, b}}",
            "{name}.arrive {may} a, b",
            "{name}.red.popc {may}.u32 d, a{{, b}}, c",
            "{name}.red {may}.vote.pred p, a{{, b}}, c",
        )
        for name, may in _BARRIERS
    ),
    vote="and or",
    section="9.7.13.1",
    fast=FastForm(_fast_bar, together="open_barriers", gathers=True),
)
def cta_barrier(instr):
    mods = set(instr.mods)
    aligned = instr.op == "bar" or "aligned" in mods
    if "red" in mods:
        return _barrier_red(instr, aligned)
    arrive_only = "arrive" in mods

    def run(cluster: Cluster, split: Split, args):
        threads = cluster.scalar(split, args[1]) if len(args) > 1 else None
        return _arrive_cta(cluster, split, cluster.scalar(split, args[0]), threads, aligned, arrive_only)

    return run


def _arrive_cta(
    cluster: Cluster, split: Split, number: int, threads, aligned: bool, arrive_only: bool = False, vote=None
):
    if aligned:
        require_aligned(cluster, split, leavers_count=False)
    if number > 15:
        cluster.reporter.add("illegal", "error", f"barrier {number}: a CTA has barriers 0..15", split=split)
        return None
    barrier = barrier_of_cta(cluster, split.cta, number)
    if threads is not None and threads % 32:
        message = f"barrier {number}: thread count {threads} is not a multiple of 32"
        hint = "count whole warps"
        cluster.reporter.add("illegal", "error", message, hint, split)
    barrier.expected = threads
    barrier.partial[split.warp] = barrier.partial.get(split.warp, 0) | split.mask
    _count_warp(cluster, barrier, split.warp, aligned)
    if vote is not None:
        barrier.votes.append(vote)
    cluster.bus.bar_arrive(cluster, split, BarArrival(number, threads, not arrive_only))
    key = ("bar", split.cta, number, barrier.generation)
    if not arrive_only:
        barrier.waiting.append((split, split.mask))
    if _complete_cta(cluster, split.cta, number):
        return None
    if arrive_only:
        return None
    detail = {"number": number, "expected": threads}
    return cluster.wait(split, Wait("bar", key, detail), park=True)


def _count_warp(cluster: Cluster, barrier: CtaBarrier, warp: int, together: bool) -> None:
    """Counts a warp as 32 threads once all its lanes have arrived. together: all at once (.aligned)."""
    if together or not cluster.alive[warp] & ~barrier.partial[warp]:
        barrier.arrived += 32
        del barrier.partial[warp]


def _complete_cta(cluster: Cluster, cta: int, number: int) -> bool:
    """Opens the barrier if all its threads have arrived; whether it did."""
    barrier = barrier_of_cta(cluster, cta, number)
    expected = barrier.expected if barrier.expected is not None else cluster.cta_alive(cta)
    if not barrier.arrived or barrier.arrived < expected:
        return False
    cluster.bus.bar_complete(cluster, cta, number, [s for s, _ in barrier.waiting])
    if barrier.votes:
        _deliver_votes(cluster, barrier)
    key = ("bar", cta, number, barrier.generation)
    cluster.unit_state[("bar", cta, number)] = CtaBarrier(generation=barrier.generation + 1)
    cluster.wake(key)
    return True


def _barriers_after_exit(cluster: Cluster, cta: int) -> None:
    for key in [k for k in cluster.unit_state if k[0] == "bar" and k[1] == cta]:
        barrier = cluster.unit_state[key]
        for warp in list(barrier.partial):
            _count_warp(cluster, barrier, warp, False)
        if barrier.expected is None:
            _complete_cta(cluster, cta, key[2])


def _barrier_red(instr, aligned: bool):
    mode = next(m for m in instr.mods if m in ("popc", "and", "or"))

    def run(cluster: Cluster, split: Split, args):
        target, number, *rest = args
        source = rest[-1]
        threads = cluster.scalar(split, rest[0]) if len(rest) > 1 else None
        true = cluster.predicate(split, source.code) & split.mask
        vote = (split, split.mask, true, mode, target)
        return _arrive_cta(cluster, split, cluster.scalar(split, number), threads, aligned, vote=vote)

    return run


def _deliver_votes(cluster: Cluster, barrier: CtaBarrier) -> None:
    total = sum(true.bit_count() for _, _, true, _, _ in barrier.votes)
    threads = sum(mask.bit_count() for _, mask, _, _, _ in barrier.votes)
    for split, mask, _, mode, target in barrier.votes:
        voters = split.at(mask)
        if mode == "popc":
            cluster.write(voters, target, np.uint64(total))
        else:
            result = total == threads if mode == "and" else total > 0
            cluster.set_predicate(voters, target.code, 0xFFFF_FFFF if result else 0)


# ---- barrier.cluster ----


@dataclass
class ClusterBarrier:
    seen: np.ndarray  # per thread: the phase it arrived in, or -1
    phase: int = 0  # phases completed
    arrived: int = 0  # threads that have arrived in the current phase
    lanes: dict[int, int] = field(default_factory=dict)  # warp -> mask of its lanes among them

    def missing(self, warp: int, lanes: int) -> int:
        """Mask of those among `lanes` of a warp that have yet to arrive."""
        return lanes & ~self.lanes.get(warp, 0)


def barrier_of_cluster(cluster: views.Cluster) -> ClusterBarrier:
    if ("cluster-bar",) not in cluster.unit_state:
        cluster.unit_state["cluster-bar",] = ClusterBarrier(np.full(32 * cluster.warps, -1))
    return cluster.unit_state["cluster-bar",]


@unit("barrier.cluster.arrive {.sem}{.aligned}", sem="release relaxed", section="9.7.13.3")
def cluster_arrive(instr):
    mods = set(instr.mods)

    def run(cluster: Cluster, split: Split, args):
        if "aligned" in mods:
            require_aligned(cluster, split, leavers_count=False)
        barrier = barrier_of_cluster(cluster)
        if barrier.missing(split.warp, split.mask) != split.mask:
            message = "barrier.cluster.arrive twice without barrier.cluster.wait between"
            hint = "after each arrive, a thread must execute the wait before the next arrive"
            cluster.reporter.add("cluster", "error", message, hint, split)
        barrier.lanes[split.warp] = barrier.lanes.get(split.warp, 0) | split.mask
        barrier.arrived += split.mask.bit_count()
        barrier.seen[split.warp * 32 + split.lanes] = barrier.phase
        cluster.bus.cluster_arrive(cluster, split, "relaxed" in mods)
        _complete_cluster(cluster)

    return run


def _complete_cluster(cluster: Cluster) -> None:
    barrier = cluster.unit_state.get(("cluster-bar",))
    if barrier is None or not barrier.arrived:
        return
    if not any(barrier.missing(w, alive) for w, alive in enumerate(cluster.alive)):
        barrier.phase += 1
        barrier.arrived, barrier.lanes = 0, {}
        cluster.bus.cluster_complete(cluster)
        cluster.wake(("cluster-bar", barrier.phase - 1))


@unit("barrier.cluster.wait {.acquire}{.aligned}", section="9.7.13.3")
def cluster_wait(instr):
    mods = set(instr.mods)

    def run(cluster: Cluster, split: Split, args):
        if "aligned" in mods:
            require_aligned(cluster, split, leavers_count=False)
        barrier = barrier_of_cluster(cluster)
        phase = barrier.seen.item(split.thread)
        if phase < 0:
            cluster.reporter.add(
                "cluster", "error", "barrier.cluster.wait without an arrive before it", split=split
            )
            return None
        if barrier.phase > phase:
            cluster.bus.cluster_wait(cluster, split)
            return None
        return cluster.wait(split, Wait("cluster", ("cluster-bar", phase)))

    return run


def after_exit(cluster: Cluster, cta: int) -> None:
    """Completes barriers of a CTA and its cluster that waited only for threads that have exited."""
    _barriers_after_exit(cluster, cta)
    _complete_cluster(cluster)
