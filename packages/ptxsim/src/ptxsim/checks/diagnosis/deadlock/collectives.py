"""Waits for what lanes, warps or CTAs must execute together, and for free columns or registers."""

from __future__ import annotations

from ptxsim.checks.diagnosis.deadlock.cause import Blame, blame
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.number_agreement import agree
from ptxsim.machine.register_files import WHOLE_WARP


def collective(model: Model, waiter: Waiter) -> Blame | None:
    if waiter.kind != "collective":
        return None
    left = model.cluster.alive[next(iter(waiter.lanes))] & model.missing_lanes(waiter)
    alone = agree(model.lanes_wanted(waiter), "does not arrive" if left else "has ended")
    others = ", ".join(h.state for h in waiter.helpers) or alone
    elects = model.program.instrs[waiter.row].op == "elect"
    return blame("elect" if elects else "lanes", waiter, others=others)


def alloc(model: Model, waiter: Waiter) -> Blame | None:
    if waiter.kind != "tmem-alloc":
        return None
    return blame("alloc", waiter)


def pair(model: Model, waiter: Waiter) -> Blame | None:
    if waiter.kind != "tmem-pair":
        return None
    return blame("pair", waiter, what=waiter.detail["what"])


def registers(model: Model, waiter: Waiter) -> Blame | None:
    if waiter.kind != "registers":
        return None
    now, free = waiter.detail["now"], waiter.detail["free"]
    return blame("registers", waiter, now=now, free=free, more=32 * (waiter.detail["count"] - now))


def warpgroup(model: Model, waiter: Waiter) -> Blame | None:
    if waiter.kind != "wgmma":
        return None
    lanes = dict.fromkeys(model.absent_warps(waiter), WHOLE_WARP)
    others = ", ".join(dict.fromkeys(h.state for h in waiter.helpers)) or "has ended"
    absent = model.role(waiter.cta, lanes)
    return blame("warpgroup", waiter, absent=absent, issues=agree(absent, "issues"), others=others)
