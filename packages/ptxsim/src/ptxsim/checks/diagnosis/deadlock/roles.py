"""Standstills of warps with roles: one that has two of them, a barrier of all that one role comes to."""

from __future__ import annotations

from ptxsim.checks.diagnosis.deadlock.cause import Found, barrier_of, found
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter

_WARPGROUP = 4  # warps
_FULL = 0xFFFF_FFFF


def role_later(model: Model, waiter: Waiter, rows: set[int]) -> Found | None:
    """The arrivals that are missing are those of who waits, in a loop behind the one that it waits in."""
    barrier, _ = barrier_of(model, waiter)
    own = rows & model.reach(waiter)
    lanes = sum(mask.bit_count() for mask in waiter.lanes.values())
    if barrier.pending != lanes or any(model.in_one_loop(waiter.row, row) for row in own):
        return None
    came = f"{barrier.expected - barrier.pending} of {barrier.expected} arrivals came"
    return found("role-later", waiter, came=came, line=model.line(min(own)))


def bar_of_a_role(model: Model, waiter: Waiter) -> bool:
    """Whole warpgroups stand at a barrier of all threads, which nobody else will ever come to."""
    if waiter.kind != "bar" or waiter.detail["expected"] is not None or not waiter.helpers:
        return False
    whole = all(mask == _FULL for mask in waiter.lanes.values()) and len(waiter.lanes) % _WARPGROUP == 0
    groups = {warp // _WARPGROUP for warp in waiter.lanes}
    others = [h.waiter for h in waiter.helpers if h.waiter is not None]
    alone = all(waiter.row not in model.reach(other) for other in others)
    return whole and len(groups) * _WARPGROUP == len(waiter.lanes) and bool(others) and alone
