"""A part of the race detector: it sees the same events and shares the detector's state."""

from __future__ import annotations

from ptxsim.checks.race.vector_clocks import VectorClocks
from ptxsim.events.observer import Observer


class Part(Observer):
    clocks: VectorClocks  # of the cluster that runs: set before it starts

    def __init__(self, races):
        self.races = races
