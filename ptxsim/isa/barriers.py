"""CTA barriers (bar, barrier), cluster barriers, and mbarrier operations (PTX ISA 9.7.13.1, .3, .15)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ptxsim import machine_layout as ml
from ptxsim.cluster import Wait
from ptxsim.isa.units import check_mods, refuse, unit
from ptxsim.isa.warp_ops import require_aligned
from ptxsim.mbarrier import MBarrier, MBarrierError
from ptxsim.memory import shared_place

# ---- bar, barrier ----


@dataclass
class CtaBarrier:
    """One of the 16 barriers of a CTA."""

    arrived: int = 0  # threads
    expected: int | None = None  # threads; None: all of the CTA
    waiting: list = field(default_factory=list)  # (split, lanes)
    votes: list = field(default_factory=list)  # (lanes, mask of true) for .red
    partial: dict = field(default_factory=dict)  # warp -> lanes that arrived while others of it have still to
    generation: int = 0


def _cta_barrier(cluster, cta: int, number: int) -> CtaBarrier:
    return cluster.unit_state.setdefault(("bar", cta, number), CtaBarrier())


@unit(
    "bar.sync",
    "bar.arrive",
    "bar.red",
    "bar.cta",
    "barrier.sync",
    "barrier.arrive",
    "barrier.red",
    "barrier.cta",
    section="9.7.13.1",
)
def cta_barrier(instr):
    mods = check_mods(instr, {"cta", "sync", "arrive", "red", "aligned", "popc", "and", "or", "u32", "pred"})
    aligned = instr.op == "bar" or "aligned" in mods
    if "red" in mods:
        return _barrier_red(instr, aligned)
    arrive_only = "arrive" in mods

    def run(cluster, split, args):
        threads = cluster.scalar(split, args[1]) if len(args) > 1 else None
        return _arrive_cta(cluster, split, cluster.scalar(split, args[0]), threads, aligned, arrive_only)

    return run


def _arrive_cta(cluster, split, number: int, threads, aligned: bool, arrive_only: bool = False, vote=None):
    if aligned:
        require_aligned(cluster, split)
    if number > 15:
        cluster.reporter.add("illegal", "error", f"barrier {number}: a CTA has barriers 0..15", split=split)
        return None
    barrier = _cta_barrier(cluster, split.cta, number)
    if threads is not None and threads % 32:
        cluster.reporter.add(
            "illegal",
            "error",
            f"barrier {number}: thread count {threads} is not a multiple of 32",
            "count whole warps",
            split,
        )
    barrier.expected = threads
    barrier.partial[split.warp] = barrier.partial.get(split.warp, 0) | split.mask
    _count_warp(cluster, barrier, split.warp, aligned)
    if vote is not None:
        barrier.votes.append(vote)
    if cluster.checks:
        cluster.checks.bar_arrive(cluster, split, number)
    key = ("bar", split.cta, number, barrier.generation)
    if not arrive_only:
        barrier.waiting.append((split, split.mask))
    if _complete_cta(cluster, split.cta, number):
        return None
    if arrive_only:
        return None
    detail = {"number": number, "arrived": barrier.arrived, "expected": threads}
    return cluster.wait(split, Wait("bar", key, detail), park=True)


def _count_warp(cluster, barrier: CtaBarrier, warp: int, together: bool) -> None:
    """A warp counts as 32 threads once all its lanes have arrived; .aligned says that they do so together."""
    if together or not cluster.alive[warp] & ~barrier.partial[warp]:
        barrier.arrived += 32
        del barrier.partial[warp]


def _complete_cta(cluster, cta: int, number: int) -> bool:
    """Opens the barrier if all its threads have arrived."""
    barrier = _cta_barrier(cluster, cta, number)
    expected = barrier.expected if barrier.expected is not None else cluster.cta_alive(cta)
    if not barrier.arrived or barrier.arrived < expected:
        return False
    if cluster.checks:
        cluster.checks.bar_complete(cluster, cta, number, [s for s, _ in barrier.waiting])
    if barrier.votes:
        _deliver_votes(cluster, barrier)
    key = ("bar", cta, number, barrier.generation)
    cluster.unit_state[("bar", cta, number)] = CtaBarrier(generation=barrier.generation + 1)
    cluster.wake(key)
    return True


def _barriers_after_exit(cluster, cta: int) -> None:
    for key in [k for k in cluster.unit_state if k[0] == "bar" and k[1] == cta]:
        barrier = cluster.unit_state[key]
        for warp in list(barrier.partial):
            _count_warp(cluster, barrier, warp, False)
        if barrier.expected is None:
            _complete_cta(cluster, cta, key[2])


def _barrier_red(instr, aligned: bool):
    mode = next(m for m in instr.mods if m in ("popc", "and", "or"))

    def run(cluster, split, args):
        target, number, *rest = args
        source = rest[-1]
        threads = cluster.scalar(split, rest[0]) if len(rest) > 1 else None
        true = cluster.predicate(split, source.code) & split.mask
        vote = (split, split.mask, true, mode, target)
        return _arrive_cta(cluster, split, cluster.scalar(split, number), threads, aligned, vote=vote)

    return run


def _deliver_votes(cluster, barrier: CtaBarrier) -> None:
    total = sum(bin(true).count("1") for _, _, true, _, _ in barrier.votes)
    threads = sum(bin(mask).count("1") for _, mask, _, _, _ in barrier.votes)
    for split, mask, _, mode, target in barrier.votes:
        split.mask = mask
        if mode == "popc":
            cluster.write(split, target, np.uint64(total))
        else:
            result = total == threads if mode == "and" else total > 0
            cluster.set_predicate(split, target.code, 0xFFFF_FFFF if result else 0)


# ---- barrier.cluster ----


def _cluster_barrier(cluster) -> dict:
    """phase: phases completed; arrived: threads, lanes: per warp, in this one; seen: thread -> phase it
    arrived in.
    """
    return cluster.unit_state.setdefault(
        ("cluster-bar",), {"phase": 0, "arrived": 0, "lanes": {}, "seen": {}}
    )


@unit("barrier.cluster.arrive", section="9.7.13.3")
def cluster_arrive(instr):
    mods = check_mods(instr, {"cluster", "arrive", "release", "relaxed", "aligned"})

    def run(cluster, split, args):
        if "aligned" in mods:
            require_aligned(cluster, split)
        state = _cluster_barrier(cluster)
        if state["lanes"].get(split.warp, 0) & split.mask:
            cluster.reporter.add(
                "cluster",
                "error",
                "barrier.cluster.arrive twice without barrier.cluster.wait between",
                "each arrive of a thread is followed by its wait",
                split,
            )
        state["lanes"][split.warp] = state["lanes"].get(split.warp, 0) | split.mask
        state["arrived"] += bin(split.mask).count("1")
        for lane in split.lanes:
            state["seen"][split.warp * 32 + int(lane)] = state["phase"]
        if cluster.checks:
            cluster.checks.cluster_arrive(cluster, split, relaxed="relaxed" in mods)
        _complete_cluster(cluster)

    return run


def _complete_cluster(cluster) -> None:
    state = cluster.unit_state.get(("cluster-bar",))
    if (
        state
        and state["arrived"]
        and all(not m & ~state["lanes"].get(w, 0) for w, m in enumerate(cluster.alive))
    ):
        state["phase"] += 1
        state["arrived"], state["lanes"] = 0, {}
        if cluster.checks:
            cluster.checks.cluster_complete(cluster)
        cluster.wake(("cluster-bar", state["phase"] - 1))


@unit("barrier.cluster.wait", section="9.7.13.3")
def cluster_wait(instr):
    mods = check_mods(instr, {"cluster", "wait", "acquire", "aligned"})

    def run(cluster, split, args):
        if "aligned" in mods:
            require_aligned(cluster, split)
        state = _cluster_barrier(cluster)
        phase = state["seen"].get(split.thread)
        if phase is None:
            cluster.reporter.add(
                "cluster", "error", "barrier.cluster.wait without an arrive before it", split=split
            )
            return None
        if state["phase"] > phase:
            if cluster.checks:
                cluster.checks.cluster_wait(cluster, split)
            return None
        return cluster.wait(split, Wait("cluster", ("cluster-bar", phase), {"arrived": state["arrived"]}))

    return run


def after_exit(cluster, cta: int) -> None:
    """Exited threads no longer take part in barriers of their CTA and cluster."""
    _barriers_after_exit(cluster, cta)
    _complete_cluster(cluster)


# ---- mbarrier ----

_SPACES = {"shared", "shared::cta", "shared::cluster"}
_SEMANTICS = {"release", "acquire", "relaxed", "cta", "cluster", "b64", *_SPACES}


def place_of(cluster, split, address: int, generic: bool) -> tuple[int, int] | None:
    """(rank, offset) of a shared address; None, with a finding, if this cluster has no such place."""
    if generic:
        if not ml.SHARED_BASE <= address < ml.SHARED_END:
            cluster.reporter.add(
                "mbarrier", "error", f"address {address:#x} is not in shared memory", split=split
            )
            return None
        address -= ml.SHARED_BASE
    rank, offset = shared_place(address)
    if rank >= cluster.ctas or not ml.SHARED_START <= offset < cluster.launch.shared_end:
        cluster.reporter.add(
            "out-of-bounds",
            "error",
            f"address {address:#x} is outside the shared memory of this cluster",
            split=split,
        )
        return None
    return rank, offset


def find_barrier(cluster, split, place: tuple[int, int] | None, action: str) -> MBarrier | None:
    if place is None:
        return None
    barrier = cluster.mbarriers.get(place)
    if barrier is None:
        name = cluster.reporter.shared_name(place[1])
        cluster.reporter.add(
            "mbarrier",
            "error",
            f"{action} on {name} of CTA {place[0]}, which nobody has initialised",
            ".init() acts in thread 0 of the CTA: it must not stand under a condition that thread 0 "
            "does not meet; "
            "every stage needs its own init",
            split,
            key=("uninit", place[1]),
            barrier=name,
        )
    return barrier


def guarded(cluster, split, place: tuple[int, int], change) -> None:
    """Applies `change()` to a barrier; a count that leaves its range is a finding. Completes the phase if
    due.
    """
    try:
        change()
    except MBarrierError as error:
        name = cluster.reporter.shared_name(place[1])
        cluster.reporter.add(
            "mbarrier",
            "error",
            f"{name} of CTA {place[0]}: {error}",
            "compare the count given to init with who arrives in a phase",
            split,
            key=("count", place[1]),
            barrier=name,
        )
    settle(cluster, place)


def settle(cluster, place: tuple[int, int]) -> None:
    """Completes the current phase of a barrier if nothing is missing, and wakes who waits for it."""
    barrier = cluster.mbarriers[place]
    cluster.effects += 1
    if barrier.turn():
        if cluster.checks:
            cluster.checks.phase_complete(cluster, place)
        cluster.wake(("mbarrier", place))


def _is_generic(instr) -> bool:
    return not _SPACES & set(instr.mods)


def _places(cluster, split, arg, generic: bool) -> list[tuple[int, tuple[int, int]]]:
    """(lane, place) of every active lane."""
    found = []
    for lane, address in zip(split.lanes, cluster.addresses(split, arg), strict=True):
        place = place_of(cluster, split, int(address), generic)
        if place is not None:
            found.append((int(lane), place))
    return found


@unit("mbarrier.init", section="9.7.13.15.9")
def init(instr):
    check_mods(instr, {"init", "b64", "shared", "shared::cta"})
    generic = _is_generic(instr)

    def run(cluster, split, args):
        counts = cluster.read(split, args[1])
        for lane, place in _places(cluster, split, args[0], generic):
            _init_one(cluster, split, lane, place, int(counts[lane]) & 0xFFFF_FFFF)

    return run


def _init_one(cluster, split, lane: int, place: tuple[int, int], count: int) -> None:
    name = cluster.reporter.shared_name(place[1])
    if place[1] % 8:
        cluster.reporter.add("misaligned", "error", f"mbarrier at {name} is not 8-byte aligned", split=split)
    if place in cluster.mbarriers:
        cluster.reporter.add(
            "mbarrier",
            "error",
            f"{name} is initialised twice without mbarrier.inval between",
            "one thread initialises each barrier once",
            split,
            key=("twice", place[1]),
            barrier=name,
        )
    try:
        barrier = MBarrier.with_count(count)
    except MBarrierError as error:
        cluster.reporter.add("mbarrier", "error", f"{name}: {error}", "", split, barrier=name)
        barrier = MBarrier(1, 1)
    cluster.mbarriers[place] = barrier
    rank, offset = place
    cluster.shared[rank, offset : offset + 8].view(np.uint64)[0] = barrier.state()
    cluster.effects += 1
    if cluster.checks:
        cluster.checks.mbarrier_init(cluster, split, lane, place)


@unit("mbarrier.inval", section="9.7.13.15.10")
def inval(instr):
    generic = _is_generic(instr)

    def run(cluster, split, args):
        for _, place in _places(cluster, split, args[0], generic):
            if find_barrier(cluster, split, place, "mbarrier.inval"):
                del cluster.mbarriers[place]

    return run


@unit("mbarrier.arrive", "mbarrier.arrive_drop", writes=(0,), section="9.7.13.15.13")
def arrive(instr):
    mods = check_mods(instr, {"arrive", "arrive_drop", "expect_tx", "noComplete", *_SEMANTICS})
    generic, drop, announce = _is_generic(instr), "arrive_drop" in mods, "expect_tx" in mods
    returns = len(instr.operands) > 1 and not hasattr(instr.operands[0], "base")

    def run(cluster, split, args):
        target, rest = (args[0], args[1:]) if returns else (-1, args)
        numbers = cluster.read(split, rest[1]) if len(rest) > 1 else None
        states = np.zeros(32, np.uint64)
        for lane, place in _places(cluster, split, rest[0], generic):
            barrier = find_barrier(cluster, split, place, "arrive")
            if barrier is None:
                continue
            states[lane] = barrier.state()
            number = int(numbers[lane]) & 0xFFFF_FFFF if numbers is not None else (0 if announce else 1)
            if cluster.checks:
                cluster.checks.mbarrier_arrive(cluster, split, lane, place, relaxed="relaxed" in mods)

            def change(barrier=barrier, number=number):
                if announce:
                    barrier.expect_tx(number)
                barrier.arrive(1 if announce else number, drop)

            guarded(cluster, split, place, change)
        if isinstance(target, int) and target >= 0:
            cluster.write(split, target, states[split.lanes])

    return run


@unit("mbarrier.expect_tx", "mbarrier.complete_tx", section="9.7.13.15.11")
def expect_tx(instr):
    check_mods(instr, {"expect_tx", "complete_tx", *_SEMANTICS})
    generic, announce = _is_generic(instr), "expect_tx" in instr.mods

    def run(cluster, split, args):
        sizes = cluster.read(split, args[1])
        for lane, place in _places(cluster, split, args[0], generic):
            barrier = find_barrier(cluster, split, place, "expect_tx")
            if barrier is not None:
                move = barrier.expect_tx if announce else barrier.complete_tx
                guarded(
                    cluster, split, place, lambda move=move, lane=lane: move(int(sizes[lane]) & 0xFFFF_FFFF)
                )

    return run


@unit("mbarrier.pending_count", writes=(0,), section="9.7.13.15.17")
def pending_count(instr):
    def run(cluster, split, args):
        cluster.write(split, args[0], cluster.read(split, args[1])[split.lanes] & np.uint64(0xFFFF_FFFF))

    return run


@unit("mbarrier.test_wait", "mbarrier.try_wait", writes=(0,), section="9.7.13.15.16")
def wait(instr):
    mods = check_mods(instr, {"test_wait", "try_wait", "parity", *_SEMANTICS})
    generic, blocking, parity = _is_generic(instr), "try_wait" in mods, "parity" in mods
    if "shared::cluster" in mods:
        raise refuse(instr, "mbarrier waits take only barriers of the own CTA (.shared::cta)")

    def run(cluster, split, args):
        tokens = cluster.read(split, args[2])
        passed, open_places = 0, []
        for lane, place in _places(cluster, split, args[1], generic):
            if place[0] != split.cta:
                cluster.reporter.add(
                    "cluster",
                    "error",
                    "waits on an mbarrier of another CTA; only the own CTA's can be waited on",
                    "wait on the local barrier; arrive on the remote one",
                    split,
                )
            barrier = find_barrier(cluster, split, place, "wait")
            token = int(tokens[lane])
            if barrier is None or (barrier.passed(token) if parity else barrier.passed_state(token)):
                passed |= 1 << lane
                if cluster.checks and barrier is not None:
                    cluster.checks.mbarrier_wait(cluster, split, lane, place, relaxed="relaxed" in mods)
            else:
                asked = token & 1 if parity else barrier.phase & 1
                open_places.append((place, asked))
                if cluster.checks:
                    cluster.checks.mbarrier_blocked(cluster, split, lane, place, asked)
        timed_out = cluster.unit_state.pop(("timed-out", split.index), False)
        if blocking and open_places and not passed and not timed_out:
            place, asked = open_places[0]
            detail = {"place": place, "parity": asked, "may_time_out": True}
            return cluster.wait(split, Wait("mbarrier", ("mbarrier", place), detail))
        cluster.set_predicate(split, args[0].code, passed)
        return None

    return run
