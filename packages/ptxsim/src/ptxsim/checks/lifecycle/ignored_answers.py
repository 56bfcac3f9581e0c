"""Waits at an mbarrier whose result nobody looks at.

try_wait may return before the phase is complete (PTX ISA 9.7.13.15.16): a thread that does not ask again has
waited for nothing. Reported as a `review`, and only if the phase was open and the warp has not asked for it
elsewhere by its end: CUTLASS's main loops look whether the next stage is there, and then wait all the same.
"""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.static_flow import ignored_questions
from ptxsim.events.observer import Observer
from ptxsim.events.records import PhaseWait
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.report.findings import Reporter


class IgnoredAnswers(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter, self.rows = reporter, ignored_questions(launch.program)
        self.on = bool(self.rows)

    def start(self, cluster: Cluster) -> None:
        self.open: dict[tuple, Split] = {}  # (warp, barrier, parity) -> where nobody looked at the answer

    def mbarrier_blocked(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        key = split.warp, wait.place, wait.parity
        if split.row in self.rows:
            self.open.setdefault(key, split.at())
        else:
            self.open.pop(key, None)

    def mbarrier_wait(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        if split.row not in self.rows:
            self.open.pop((split.warp, wait.place, wait.parity), None)

    def finish(self, cluster: Cluster) -> None:
        if cluster.stuck:  # a warp may be held up before it asks again
            for last in {key[0]: key for key in self.open}.values():
                del self.open[last]
        for (_, place, _), where in self.open.items():
            cause, name = CAUSES["ignored-answer"], self.reporter.shared_name(place[1])
            self.reporter.add("mbarrier", "review", cause.tell(name=name), cause, where, key="ignored answer")
