"""The fence that is missing between two accesses that are ordered without it."""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.diagnosis.reason import Reason
from ptxsim.checks.race.access import Access
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.shadow_order import NO_FENCE_READ, NO_FENCE_WRITE, NO_TCGEN05_FENCE
from ptxsim.checks.race.wording import UNITS
from ptxsim.report.findings import lanes_text


def missing_fence(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """The proxy fence or tcgen05 fence that a pair lacks; None if it lacks more than a fence."""
    if pair.code in (NO_FENCE_READ, NO_FENCE_WRITE):
        cause = "copy-fence" if pair.first.kind == "cp.async" else "proxy-fence"
        return Reason(CAUSES[cause], _proxy_fence(pair))
    if pair.code == NO_TCGEN05_FENCE:
        return Reason(CAUSES["tcgen05-fence"], _tcgen05_fence(races, pair))
    return None


def _proxy_fence(pair: AccessPair) -> str:
    if pair.elsewhere is not None:
        return "fence.proxy.async ran after the barrier; the writing threads must run it before"
    where = "shared::cta" if pair.space == "shared" else "global"
    between = (
        "after a wait for the copy" if pair.first.kind == "cp.async" else "between the write and the barrier"
    )
    return f"no fence.proxy.async for .{where} {between}"


def _tcgen05_fence(races: RaceDetector, pair: AccessPair) -> str:
    first, second = pair.first, pair.second
    if first.kind == "ld" and not pair.waited:
        return (
            "its warp has not executed tcgen05.wait::ld; that a register was read orders no other access "
            "(PTX ISA 9.7.16.6.4.5), though chips have read the columns by then"
        )
    if first.kind == "mma":  # its commit implies the other fence
        later = UNITS.get(second.kind, "what comes later")
        return f"no tcgen05.fence::after_thread_sync between the wait and {later}"
    some = _fence_of_some_lanes(races, first)
    if some:
        return some
    if second.kind == "thread":  # dealloc
        return "no tcgen05.fence::before_thread_sync between that and the barrier"
    return "their synchronisation has no tcgen05.fence::before_thread_sync / after_thread_sync pair"


def _fence_of_some_lanes(races: RaceDetector, first: Access) -> str:
    """Some lanes of a warp, but not all, have executed the fence after its tcgen05.ld or tcgen05.st."""
    if first.kind not in ("ld", "st"):
        return ""
    _, lanes = races.synchronization.fenced.get(races.clocks.queue(first.agent).owner, ((), 0))
    if not lanes:
        return ""
    who = f"lane{'s' * (lanes & (lanes - 1) > 0)} {lanes_text(lanes)}"
    return (
        f"{who} of its warp alone executed tcgen05.fence::before_thread_sync after it, which orders only the "
        "thread that executes it: every lane that arrives needs one"
    )
