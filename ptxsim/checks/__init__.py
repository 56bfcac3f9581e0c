"""Observers of a run: what is wrong although, or because, the machine went on."""

from __future__ import annotations

from ptxsim.checks.protocol import Observer


class Checker(Observer):
    """All checks of a launch."""

    def __init__(self, launch, reporter):
        self.launch, self.reporter = launch, reporter
