"""Waits for what lanes, warps or CTAs must execute together, and for free columns or registers."""

from __future__ import annotations

from ptxsim.checks.diagnosis.deadlock.cause import barrier_of, stuck
from ptxsim.checks.diagnosis.deadlock.over_without import went_on
from ptxsim.checks.diagnosis.deadlock.parity import not_flipped, passed_fresh
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.number_agreement import agree
from ptxsim.checks.diagnosis.reason import Reason
from ptxsim.machine.register_files import WHOLE_WARP


def collective(model: Model, waiter: Waiter) -> Reason | None:
    if waiter.kind != "collective":
        return None
    left = model.cluster.alive[next(iter(waiter.lanes))] & model.missing_lanes(waiter)
    alone = agree(model.lanes_wanted(waiter), "does not arrive" if left else "has ended")
    others = ", ".join(h.state for h in waiter.helpers) or alone
    elects = model.program.instrs[waiter.row].op == "elect"
    return stuck("elect" if elects else "lanes", waiter, others=others)


def alloc(model: Model, waiter: Waiter) -> Reason | None:
    if waiter.kind != "tmem-alloc":
        return None
    return stuck("alloc", waiter)


def pair(model: Model, waiter: Waiter) -> Reason | None:
    if waiter.kind != "tmem-pair":
        return None
    return stuck("pair", waiter, what=waiter.detail["what"])


def registers(model: Model, waiter: Waiter) -> Reason | None:
    if waiter.kind != "registers":
        return None
    now, free = waiter.detail["now"], waiter.detail["free"]
    return stuck("registers", waiter, now=now, free=free, more=32 * (waiter.detail["count"] - now))


def warpgroup(model: Model, waiter: Waiter) -> Reason | None:
    if waiter.kind != "wgmma":
        return None
    lanes = dict.fromkeys(model.absent_warps(waiter), WHOLE_WARP)
    late = [other for other in model.waiters if lanes.keys() & other.lanes.keys()]
    asked = [find(model, other) for find in (_lost_phase, not_flipped) for other in late]
    asked += [_went_ahead(model, waiter, other) for other in late]
    found = [one for one in asked if one is not None]
    if found:
        return found[0]
    rows = {part.where.row for part in waiter.detail["parts"]}
    if any(o.kind == "mbarrier" and not o.helpers and rows & model.reach(o) for o in late):
        return None  # before the product they wait for a barrier that nobody can signal
    others = ", ".join(dict.fromkeys(h.state for h in waiter.helpers)) or "has ended"
    absent = model.role(lanes)
    return stuck("warpgroup", waiter, absent=absent, issues=agree(absent, "issues"), others=others)


def _went_ahead(model: Model, waiter: Waiter, late: Waiter) -> Reason | None:
    """Those who issued it passed the wait at which the others are held: it was their first for that barrier,
    and asked for parity 1.
    """
    history = barrier_of(model, late)[1]
    if history is None or not late.detail["parity"] or not waiter.lanes.keys() <= history.waits.keys():
        return None
    return passed_fresh(model, waiter, late.place)


def _lost_phase(model: Model, waiter: Waiter) -> Reason | None:
    """The group waits for a phase that is over, as is the next one: parity tells them apart no more."""
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None:
        return None
    wanted = 1 + min(history.waits[w].phase if w in history.waits else -1 for w in waiter.lanes)
    if waiter.detail["parity"] != wanted & 1 or barrier.phase < wanted + 2:
        return None
    name = model.name(waiter.place)
    return went_on(model, waiter) or stuck("phase-lost", waiter, name=name, phase=wanted, now=barrier.phase)
