"""One role in two warps: both wait at one line for the same barrier, and one of them issues no MMA."""

from __future__ import annotations

from collections.abc import Iterable

from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.reason import Reason, reason


def role_in_two_warps(case: Case, thread: int, issuers: Iterable[int]) -> Reason | None:
    """A thread commits, and has waited at the same line as another warp of its CTA, which issues the MMAs."""
    warp, per_cta = thread // 32, case.cluster.warps_per_cta
    others = {other // 32 for other in issuers} - {warp}
    for other in sorted(w for w in others if w // per_cta == warp // per_cta):
        for place, history in case.histories.items():
            if not history.loaders or warp not in history.waits or other not in history.waits:
                continue
            rows = (history.waits[w].rows for w in (warp, other))
            lines = [{case.line(row) for row in mine} for mine in rows]
            if lines[0] & lines[1]:
                both = [case.role({w: history.waits[w].lanes}) for w in (other, warp)]
                facts = {"one": both[0], "other": both[1], "line": min(lines[0] & lines[1])}
                return reason("role-in-two-warps", name=case.array(place), **facts)
    return None
