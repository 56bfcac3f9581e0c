"""Waits for a phase of an mbarrier: test_wait and try_wait, by parity or state (PTX ISA 9.7.13.15.16)."""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.records import PhaseWait
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.mbarrier import phases_since
from ptxsim.machine.split import Split, Wait
from ptxsim.units.mbarrier import find_barrier, place_of, same_value
from ptxsim.units.mbarrier_lanes import fast_wait, is_generic, wait_passed
from ptxsim.units.registry import FastForm, unit


@unit(
    "mbarrier.test_wait {.sem.scope}{.own}.b64 done, [bar], state",
    "mbarrier.test_wait.parity {.sem.scope}{.own}.b64 done, [bar], parity",
    "mbarrier.try_wait {.sem.scope}{.own}.b64 done, [bar], state{, time}",
    "mbarrier.try_wait.parity {.sem.scope}{.own}.b64 done, [bar], parity{, time}",
    sem="acquire relaxed",
    scope="cta cluster",
    writes=(0,),
    section="9.7.13.15.16",
    fast=FastForm(fast_wait, called=wait_passed, gathers=True),
)
def wait(instr):
    mods = set(instr.mods)
    generic, blocking, parity = is_generic(instr), "try_wait" in mods, "parity" in mods
    acquires = "relaxed" not in mods

    def run(cluster: Cluster, split: Split, args):
        passed, first_open = 0, None
        for lanes, place, token in _groups(cluster, split, args[1], generic, args[2]):
            if place[0] != split.cta:
                _not_ours(cluster, split)
            if parity and token & 0xFFFF_FFFF > 1:
                _no_parity(cluster, split, token & 0xFFFF_FFFF)
            barrier = find_barrier(cluster, split, place, "wait")
            if barrier is not None and not parity:
                _of_this_phase_or_the_last(cluster, split, phases_since(barrier.phase, token))
            if barrier is None or (barrier.passed(token) if parity else phases_since(barrier.phase, token)):
                passed |= lanes
                if barrier is not None:
                    asked = barrier.phase - 1 & 1
                    cluster.bus.mbarrier_wait(cluster, split, PhaseWait(lanes, place, asked, acquires))
                continue
            asked = token & 1 if parity else barrier.phase & 1
            first_open = first_open or (place, asked)
            cluster.bus.mbarrier_blocked(cluster, split, PhaseWait(lanes, place, asked, acquires))
        timed_out = cluster.unit_state.pop(("timed-out", split.index), False)
        if not blocking or passed or timed_out:
            first_open = None
        if first_open and not _gives_up(cluster, split, *first_open):
            place, asked = first_open
            detail = {"place": place, "parity": asked, "may_time_out": True}
            return cluster.wait(split, Wait("mbarrier", ("mbarrier", place), detail))
        cluster.set_predicate(split, args[0].code, passed)
        return None

    return run


def _gives_up(cluster: Cluster, split: Split, place: tuple[int, int], asked: int) -> bool:
    """Whether a try_wait times out now, as it may at any time. One in a loop that repeats it until it passes
    does not: the result would be the same.
    """
    key = "gave up", split.index, split.row
    if not cluster.choices.impatient or cluster.unit_state.get(key) == (place, asked):
        return False
    cluster.unit_state[key] = place, asked
    return split.row not in cluster.program.asked_again


def _groups(
    cluster: Cluster, split: Split, arg, generic: bool, slot: int
) -> list[tuple[int, tuple[int, int], int]]:
    """(lanes, place, operand in `slot`) for each group of active lanes with the same barrier and operand."""
    if split.one_lane:
        place = place_of(cluster, split, cluster.address(split, arg), generic)
        return [(split.mask, place, cluster.scalar(split, slot))] if place is not None else []
    values = cluster.values(split, slot)
    if same_value(values) and same_value(cluster.values(split, arg.slot)):
        place = place_of(cluster, split, cluster.address(split, arg), generic)
        return [(split.mask, place, values[0])] if place is not None else []
    groups: dict[tuple[int, int], int] = {}
    addresses = cluster.addresses(split, arg).tolist()
    for lane, address, value in zip(split.lanes.tolist(), addresses, values, strict=True):
        groups[address, value] = groups.get((address, value), 0) | 1 << lane
    places = [(mask, place_of(cluster, split, a, generic), value) for (a, value), mask in groups.items()]
    return [(mask, place, value) for mask, place, value in places if place is not None]


def _no_parity(cluster: Cluster, split: Split, value: int) -> None:
    """Reports a phaseParity other than 0 or 1 (PTX ISA 9.7.13.15.16); only its lowest bit is used."""
    message = f"waits with parity {value}: only 0 and 1 exist (taken as {value & 1})"
    cluster.reporter.add("mbarrier", "review", message, CAUSES["parity"], split, key=("parity",))


def _of_this_phase_or_the_last(cluster: Cluster, split: Split, behind: int) -> None:
    """Reports a state that is neither of the current phase nor of the one before (PTX ISA 9.7.13.15.16)."""
    if behind > 1:
        message = f"waits by a state that is {behind} phases old, which is undefined behaviour"
        hint = "wait by the state that this iteration's own arrive has returned"
        cluster.reporter.add("mbarrier", "review", message, hint, split, key=("old state",))


def _not_ours(cluster: Cluster, split: Split) -> None:
    message = "waits on an mbarrier of another CTA; a thread can only wait on those of its own CTA"
    hint = "wait on the local barrier; arrive on the remote one"
    cluster.reporter.add("cluster", "error", message, hint, split)
