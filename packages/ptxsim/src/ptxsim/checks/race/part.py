"""A part of the race detector: it sees the same events and shares the detector's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxsim.checks.race.detector import RaceDetector

from ptxsim.checks.race.vector_clocks import VectorClocks
from ptxsim.events.observer import Observer


class Part(Observer):
    clocks: VectorClocks  # of the cluster that runs: set before it starts

    def __init__(self, races: RaceDetector):
        self.races = races
