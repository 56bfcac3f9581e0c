"""All warps of a warpgroup must execute the same setmaxnreg (PTX ISA 9.7.19.5). If each releases registers
or executes none, it is a review: an H200 accepts that, and warps of CUTLASS's attention for Blackwell release
different numbers. A warp that does not get the registers of the others would lack them.
"""

from __future__ import annotations

from collections.abc import Collection

from ptxsim.checks.diagnosis.number_agreement import role
from ptxsim.events.observer import Observer
from ptxsim.events.views import Cluster, Launch
from ptxsim.machine.register_files import WHOLE_WARP
from ptxsim.report.findings import Reporter

_SAME = "all four warps of a warpgroup execute setmaxnreg with one count: no condition on the warp around it"


class RegisterCounts(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter
        self.on = any(i.op == "setmaxnreg" for i in launch.program.by_row.values())

    def finish(self, cluster: Cluster) -> None:
        for cta in range(cluster.ctas):
            pool = cluster.unit_state.get(("registers", cta))
            if pool is None:
                continue
            first = cta * cluster.warps_per_cta
            for group in range(first, first + cluster.warps_per_cta, 4):
                warps = range(group, min(group + 4, first + cluster.warps_per_cta))
                self._group(cluster, cta, {w: pool.done.get(w, []) for w in warps})

    def _group(self, cluster: Cluster, cta: int, done: dict[int, list]) -> None:
        texts = {w: [f"{way} {count}" for way, count, _ in steps] for w, steps in done.items()}
        waiting = {g // 32 for g, wait in cluster.waits.items() if wait.kind == "registers"}
        if cluster.stuck and waiting & set(done) or len({tuple(t) for t in texts.values()}) == 1:
            return
        longest = max(texts, key=lambda w: len(texts[w]))
        other = next(w for w in texts if texts[w] != texts[longest])
        who, whom = (role(cluster, {w: WHOLE_WARP}) for w in (longest, other))
        message = (
            f"the warps of a warpgroup execute different setmaxnreg: {who} {', '.join(texts[longest])}; "
            f"{whom} {', '.join(texts[other]) or 'none'}"
        )
        at = cluster, cta, done[longest][0][2]
        severity = "review" if _each_has_its_own(texts.values()) else "error"
        self.reporter.add("collective", severity, message, _SAME, key=("setmaxnreg",), at=at)


def _each_has_its_own(texts: Collection[list[str]]) -> bool:
    """Whether each warp executes one setmaxnreg, or one dec or nothing: none lacks what another has taken."""
    single = all(len(steps) < 2 for steps in texts)
    return single and (all(texts) or all(step.startswith("dec") for steps in texts for step in steps))
