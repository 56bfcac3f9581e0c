"""Waits at an mbarrier whose answer nobody looks at.

try_wait may come back before the phase is complete (PTX ISA 9.7.13.15.16): who does not ask again has waited
for nothing. A `review`, where the phase was open: what follows may wait in another way.
"""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.observer import Observer
from ptxsim.events.records import PhaseWait
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.lowering.answers import ignored_questions


class IgnoredAnswers(Observer):
    def __init__(self, launch: Launch, reporter):
        self.reporter, self.rows = reporter, ignored_questions(launch.program)
        self.on = bool(self.rows)

    def mbarrier_blocked(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        if split.row in self.rows:
            cause, name = CAUSES["ignored-answer"], self.reporter.shared_name(wait.place[1])
            self.reporter.add("mbarrier", "review", cause.tell(name=name), cause, split, key="ignored answer")
