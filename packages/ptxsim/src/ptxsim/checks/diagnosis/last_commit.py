"""Why an MMA is still under way when its columns are freed: how the waiters for its commit missed it."""

from __future__ import annotations

from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.phrases import line_of, lines_text, phase_name, times


def missed_commit(case: Case) -> Reason | None:
    """The last phase of a barrier that commits alone signal, and that no one of its waiters has seen."""
    loaders = {warp for history in case.histories.values() for warp in history.loaders}
    for place, history in case.histories.items():
        barrier, waits = case.cluster.mbarriers.get(place), history.waits
        commits = {how for how, _, _ in history.sources} == {"commit"}
        if barrier is None or not commits or not waits or loaders & waits.keys():
            continue
        if history.seen >= barrier.phase - 1:
            continue
        lines = lines_text(sorted({line_of(case.program, row) for w in waits.values() for row in w.rows})[:3])
        again = [w.again[0] for w in waits.values() if w.again is not None]
        how = f"twice on {phase_name(again[0])}" if again else times(max(w.count for w in waits.values()))
        facts = {"name": case.name(place), "phases": barrier.phase, "lines": lines, "how": how}
        return reason("freed-before", **facts)
    return None
