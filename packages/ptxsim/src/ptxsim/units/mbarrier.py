"""mbarrier instructions (PTX ISA 9.7.13.15); machine/mbarrier.py has the rules of a single barrier."""

from __future__ import annotations

import functools

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.records import Arrival
from ptxsim.isa.address_map import FAULT_OTHER_CTA, SPACE_CLUSTER, SPACE_GENERIC
from ptxsim.jit.translate import resolve, shared_fault, shared_place
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.mbarrier import MBarrier, MBarrierError, TooManyBytes
from ptxsim.machine.split import Lanes, Split
from ptxsim.units.mbarrier_lanes import (
    fast_init,
    fast_signal,
    init_lanes,
    inval_lanes,
    is_generic,
    signal_lanes,
)
from ptxsim.units.registry import FastForm, always, unit


def place_of(cluster: Cluster, split: Lanes, address: int, generic: bool) -> tuple[int, int] | None:
    """(rank, offset) of a shared address; None, with a finding, if the cluster has no such address."""
    place = _place(address, generic, split.cta, cluster.ctas, cluster.launch.shared_end)
    if isinstance(place, str):
        message, cause = f"address {address:#x} is {_WRONG[place]}", None
        rank, offset = shared_place(address)
        if place == "cluster":
            message = f"{_WRONG[place].format(rank, cluster.ctas)}: {cluster.reporter.shared_name(offset)}"
            cause = CAUSES["no-rank"]
        if place == "out-of-bounds":
            message = f"{message}: {cluster.reporter.outside_shared(offset)}"
            cause = CAUSES["past-shared"]
        cluster.reporter.add(place, "error", message, cause or "", split=split)
        return None
    return place


_WRONG = {
    "mbarrier": "not in shared memory",
    "out-of-bounds": "outside the shared memory of this cluster",
    "cluster": "an address in CTA rank {} of a cluster of {}",
}  # by kind of finding


@functools.lru_cache(maxsize=4096)
def _place(address: int, generic: bool, cta: int, ctas: int, shared_end: int) -> tuple[int, int] | str:
    """The place that `place_of` returns, or the kind of its finding."""
    space, inside = resolve(SPACE_GENERIC if generic else SPACE_CLUSTER, address)
    if space != SPACE_CLUSTER:
        return "mbarrier"
    outside = shared_fault(space, inside, 1, cta, ctas, shared_end)
    if outside == FAULT_OTHER_CTA:
        return "cluster"
    return "out-of-bounds" if outside else shared_place(inside)


def find_barrier(
    cluster: Cluster, split: Lanes, place: tuple[int, int] | None, action: str
) -> MBarrier | None:
    if place is None:
        return None
    barrier = cluster.mbarriers.get(place)
    if barrier is None:
        name = cluster.reporter.shared_name(place[1])
        ended = cluster.mbarriers.ended(place)
        how = "that mbarrier.inval has ended" if ended else "which nobody has initialised"
        hint = "after mbarrier.inval, only a new mbarrier.init may use the barrier; does each run once?"
        cluster.reporter.add(
            "mbarrier",
            "error",
            f"{action} on {name} of CTA {place[0]}, {how}",
            hint if ended else CAUSES["no-slot" if "it has" in name else "uninitialised"],
            split,
            key=("ended" if ended else "uninit", place[1]),
            barrier=name,
            barrier_cta=place[0],
            action=action,
        )
    return barrier


def apply_count_change(cluster: Cluster, split: Lanes, place: tuple[int, int], change, *numbers) -> None:
    """Applies `change(*numbers)` to a barrier, then completes its phase if nothing is missing. A count that
    leaves its range is a finding.
    """
    try:
        change(*numbers)
    except MBarrierError as error:
        name = cluster.reporter.shared_name(place[1])
        message = f"{name} of CTA {place[0]}: {error}"
        alone = isinstance(error, TooManyBytes)
        kind, cause = ("tx-count", "bytes-announced") if alone else ("mbarrier", "arrivals")
        key = "count", place[1]
        cluster.reporter.add(
            kind, "error", message, CAUSES[cause], split, key, barrier=name, barrier_cta=place[0]
        )
    complete_if_ready(cluster, place)


def bytes_arrive(cluster: Cluster, split: Lanes, place, size: int, token) -> None:
    """Reports the bytes of a copy to its mbarrier: complete-tx (PTX ISA 9.7.13.15)."""
    barrier = find_barrier(cluster, split, place, "complete_tx")
    if barrier is not None:
        cluster.bus.async_arrive(cluster, place, token)
        apply_count_change(cluster, split, place, barrier.complete_tx, size)


def complete_if_ready(cluster: Cluster, place: tuple[int, int]) -> None:
    """Completes the current phase of a barrier if nothing is missing, and wakes the splits that wait."""
    barrier = cluster.mbarriers[place]
    cluster.effects += 1
    if barrier.try_complete_phase():
        barrier.told = barrier.phase
        cluster.bus.phase_complete(cluster, place)
        cluster.wake(("mbarrier", place))


def same_value(values: list[int]) -> bool:
    return values.count(values[0]) == len(values)


def _places(cluster: Cluster, split: Split, arg, generic: bool) -> list[tuple[int, tuple[int, int]]]:
    """(lane, place of its barrier) for every active lane with a valid address."""
    addresses = [cluster.address(split, arg)] if split.one_lane else cluster.addresses(split, arg).tolist()
    places = [place_of(cluster, split, address, generic) for address in addresses]
    pairs = zip(split.lanes.tolist(), places, strict=True)
    return [(lane, place) for lane, place in pairs if place is not None]


def _by_place(cluster: Cluster, split: Split, arg, generic: bool) -> dict[tuple[int, int], list[int]]:
    """Place of a barrier -> the active lanes that name it."""
    if split.one_lane or same_value(cluster.values(split, arg.slot)):
        place = place_of(cluster, split, cluster.address(split, arg), generic)
        return {place: split.lanes.tolist()} if place is not None else {}
    found: dict[tuple[int, int], list[int]] = {}
    for lane, place in _places(cluster, split, arg, generic):
        found.setdefault(place, []).append(lane)
    return found


@unit(
    "mbarrier.init {.own}.b64 [bar], count",
    section="9.7.13.15.9",
    fast=FastForm(fast_init, called=init_lanes),
)
def init(instr):
    generic = is_generic(instr)

    def run(cluster: Cluster, split: Split, args):
        counts = cluster.read(split, args[1])
        for lane, place in _places(cluster, split, args[0], generic):
            _init_one(cluster, split, lane, place, int(counts[lane]) & 0xFFFF_FFFF)

    return run


def _init_one(cluster: Cluster, split: Split, lane: int, place: tuple[int, int], count: int):
    name = cluster.reporter.shared_name(place[1])
    if place[1] % 8:
        cluster.reporter.add("misaligned", "error", f"mbarrier at {name} is not 8-byte aligned", split=split)
    if place in cluster.mbarriers:
        known, row = cluster.mbarriers[place], cluster.mbarriers.made_at.get(place, split.row)
        # before any use, by another thread at this instruction: the barrier stays as it is; or by the same
        # thread: the later count holds
        mine, unused = known.maker == split.warp * 32 + lane, known.untouched(known.expected)
        same = row == split.row and not mine and known.untouched(count)
        how = "by several threads" if same else "twice without mbarrier.inval between"
        severity, hint = (
            "review" if same or mine and unused else "error",
            "one thread initialises each barrier once",
        )
        hint += "" if same else "; does one of the two name a wrong barrier?"
        key, wrong = ("twice", same, place[1]), "" if same else name
        cluster.reporter.add(
            "mbarrier", severity, f"{name} is initialised {how}", hint, split, key=key, barrier=wrong
        )
    try:
        barrier = cluster.mbarriers.make(place, count)
    except MBarrierError as error:
        cluster.reporter.add("mbarrier", "error", f"{name}: {error}", "", split, barrier=name)
        barrier = cluster.mbarriers.make(place, 1)
    rank, offset = place
    cluster.mbarriers.made_at[place] = split.row
    barrier.maker = split.warp * 32 + lane
    cluster.shared[rank, offset : offset + 8].view(np.uint64)[0] = barrier.state()
    cluster.effects += 1
    cluster.bus.mbarrier_init(cluster, split, lane, place)


@unit(
    "mbarrier.inval {.own}.b64 [bar]",
    section="9.7.13.15.10",
    fast=FastForm(fast_init, called=inval_lanes),
)
def inval(instr):
    generic = is_generic(instr)

    def run(cluster: Cluster, split: Split, args):
        for _, place in _places(cluster, split, args[0], generic):
            if find_barrier(cluster, split, place, "mbarrier.inval"):
                cluster.mbarriers.remove(place)

    return run


@unit(
    "mbarrier.arrive {.sem.scope}{.space}.b64 {state, }[bar]{, count}",
    "mbarrier.arrive .noComplete{.release.cta}{.own}.b64 state, [bar], count",
    "mbarrier.arrive.expect_tx {.sem.scope}{.space}.b64 {state, }[bar], bytes",
    "mbarrier.arrive_drop {.sem.scope}{.space}.b64 {state, }[bar]{, count}",
    "mbarrier.arrive_drop .noComplete{.release.cta}{.own}.b64 state, [bar], count",
    "mbarrier.arrive_drop.expect_tx {.sem.scope}{.space}.b64 {state, }[bar], bytes",
    sem="release relaxed",
    scope="cta cluster",
    writes=(0,),
    section="9.7.13.15.13",
    fire_and_forget=True,
    signals="",
    fast=FastForm(fast_signal, called=signal_lanes),
)
def arrive(instr):
    mods = set(instr.mods)
    generic, drop, announce = is_generic(instr), "arrive_drop" in mods, "expect_tx" in mods
    keeps, relaxed, narrow = "noComplete" in mods, "relaxed" in mods, "cta" in mods
    returns = len(instr.operands) > 1 and not hasattr(instr.operands[0], "base")

    def run(cluster: Cluster, split: Split, args):
        target, rest = (args[0], args[1:]) if returns else (-1, args)
        returned = isinstance(target, int) and target >= 0
        numbers = _numbers(cluster, split, rest[1]) if len(rest) > 1 else None
        states = np.zeros(32, np.uint64)
        for place, lanes in _by_place(cluster, split, rest[0], generic).items():
            barrier = find_barrier(cluster, split, place, "arrive")
            if barrier is None:
                continue
            counts = [numbers[lane] & 0xFFFF_FFFF for lane in lanes] if numbers else [1] * len(lanes)
            total = len(lanes) if announce else sum(counts)
            _tell_if_exceeded(cluster, split, place, barrier.pending, lanes, total)
            at_once = not announce and total <= barrier.pending
            for part in [lanes] if at_once else [[lane] for lane in lanes]:
                # release.cta does not reach threads of another CTA (8.5), so nothing is released to them
                releases = not relaxed and not (narrow and place[0] != split.cta)
                number = sum(counts) if at_once else counts[lanes.index(part[0])]
                told = _arrival(split, part, place, number, releases, announce)
                cluster.bus.mbarrier_arrive(cluster, split, told)
                before, phase = barrier.state(), barrier.phase
                apply_count_change(cluster, split, place, signal, barrier, number)
                if returned:
                    states[part] = before - np.cumsum([0, *counts[: len(part) - 1]], dtype=np.uint64)
                if keeps and barrier.phase != phase:
                    _completed(cluster, split, place)
        if returned:
            cluster.write(split, target, states[split.lanes])

    def signal(barrier: MBarrier, number: int) -> None:
        if announce:
            barrier.expect_tx(number)
        barrier.arrive(1 if announce else number, drop)

    return run


def _tell_if_exceeded(cluster: Cluster, split: Split, place, pending: int, lanes: list, total: int) -> None:
    if total > pending and len(lanes) > 1:
        cluster.bus.mbarrier_exceeded(cluster, split, place, total)


def _numbers(cluster: Cluster, split: Split, slot: int) -> list[int]:
    """The values of a slot in all 32 lanes; if only one lane is active, its value for every lane."""
    return [cluster.scalar(split, slot)] * 32 if split.one_lane else cluster.read(split, slot).tolist()


def _arrival(split: Split, lanes: list[int], place, number: int, releases: bool, announces: bool) -> Arrival:
    """The event of an arrival. number: arrivals of these lanes, or bytes that one lane announces."""
    mask = split.mask if len(lanes) == split.mask.bit_count() else sum(1 << lane for lane in lanes)
    return Arrival(mask, place, 1, releases, number) if announces else Arrival(mask, place, number, releases)


def _completed(cluster: Cluster, split: Lanes, place: tuple[int, int]) -> None:
    name = cluster.reporter.shared_name(place[1])
    cluster.reporter.add(
        "mbarrier", "error", f"arrive.noComplete completed the phase of {name}; it must not",
        "use arrive without .noComplete for the last arrival", split, barrier=name,
    )  # fmt: skip


@unit(
    "mbarrier.expect_tx {.relaxed.scope}{.space}.b64 [bar], bytes",
    "mbarrier.complete_tx {.relaxed.scope}{.space}.b64 [bar], bytes",
    scope="cta cluster",
    section="9.7.13.15.11",
    fire_and_forget=True,
    signals="complete_tx",
    fast=FastForm(fast_signal, called=signal_lanes),
)
def expect_tx(instr):
    generic, announce = is_generic(instr), "expect_tx" in instr.mods

    def run(cluster: Cluster, split: Split, args):
        sizes = cluster.read(split, args[1])
        for lane, place in _places(cluster, split, args[0], generic):
            barrier = find_barrier(cluster, split, place, "expect_tx")
            if barrier is not None:
                move = barrier.expect_tx if announce else barrier.complete_tx
                apply_count_change(cluster, split, place, move, int(sizes[lane]) & 0xFFFF_FFFF)

    return run


@unit("mbarrier.pending_count .b64 count, state", writes=(0,), section="9.7.13.15.17")
@always
def pending_count(cluster: Cluster, split: Split, args):
    cluster.write(split, args[0], cluster.read(split, args[1])[split.lanes] & np.uint64(0xFFFF_FFFF))
