"""How the reason of a deadlock is worded, and questions about waits that all detectors share."""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.causes.cause import Cause
from ptxsim.checks.barrier_history import BarrierHistory
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.number_agreement import agree
from ptxsim.checks.diagnosis.reason import Reason
from ptxsim.events.views import Barrier


def stuck(name: str, waiter: Waiter, /, **facts) -> Reason:
    """The cause of this name, worded with these facts and with who waits for what."""
    cause = CAUSES[name]
    own = {"waits": says(waiter, "waits"), "has": agree(waiter.who, "has"), "wants": waiter.wants}
    return of_waiter(cause, cause.tell(**own | facts), waiter)


def of_waiter(cause: Cause, text: str, waiter: Waiter) -> Reason:
    """A cause in these words, at the place where a group waits."""
    return Reason(cause, text, waiter.row, min(waiter.lanes), waiter)


def find_cycle(model: Model, start: Waiter | None = None) -> list[Waiter]:
    """The shortest ring of groups that wait for each other; empty if there is none."""
    best: list[Waiter] = []
    for first in [start] if start else model.waiters:
        paths = [[first]]
        seen = {id(first)}
        while paths:
            path = paths.pop(0)
            for helper in path[-1].helpers:
                if helper.waiter is first and (not best or len(path) < len(best)):
                    best = path
                if helper.waiter is not None and id(helper.waiter) not in seen:
                    seen.add(id(helper.waiter))
                    paths.append([*path, helper.waiter])
    return best


def says(waiter: Waiter, verb: str) -> str:
    """`warp 0 waits`, `warps 1-3 wait`."""
    return f"{waiter.who} {agree(waiter.who, verb)}"


def barrier_of(model: Model, waiter: Waiter) -> tuple[Barrier, BarrierHistory | None] | tuple[None, None]:
    """(barrier, history) of a wait on an initialised mbarrier, else (None, None)."""
    if waiter.kind != "mbarrier" or waiter.place not in model.cluster.mbarriers:
        return None, None
    return model.cluster.mbarriers[waiter.place], model.histories.get(waiter.place)


def awaited(model: Model, waiter: Waiter) -> dict[str, str | int]:
    """Facts of the mbarrier that a group waits for: its name and phase, arrivals expected and arrived."""
    barrier = model.cluster.mbarriers.last(waiter.place)
    name, came = model.name(waiter.place), barrier.expected - barrier.pending
    init = model.line(model.histories[waiter.place].row)
    return {
        "name": name, "phase": barrier.phase, "expected": barrier.expected, "count": came,
        "init": f"init({barrier.expected}), {init}",
    }  # fmt: skip


def itself(waiter: Waiter) -> str:
    ends = next(h.what for h in waiter.helpers if h.waiter is waiter)
    return f"what would end this wait comes after it: {ends}"
