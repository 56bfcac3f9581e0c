"""Phases of an mbarrier that threads alone complete: a thread that comes after all arrivals of such a
phase comes after its end, whether it has waited for it or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Arrivals = list[tuple[np.ndarray, np.ndarray]]  # (agents, their epochs)


@dataclass
class ThreadPhases:
    now: Arrivals = field(default_factory=list)  # of the current phase, with release
    count: int = 0  # how many arrivals these make
    last: Arrivals | None = None  # of the phase before; None: it also needed other arrivals or bytes
    before: Arrivals | None = None  # of the one before that

    def arrive(self, agents: np.ndarray, epochs: np.ndarray, count: int) -> None:
        self.now.append((agents, epochs))
        self.count += count

    def end(self, expected: int) -> None:
        """Ends a phase. expected: the arrivals that every phase takes; -1: threads have dropped out."""
        self.before, self.last = self.last, self.now if self.count == expected else None
        self.now, self.count = [], 0


def come_after(arrivals: Arrivals | None, clocks: np.ndarray) -> np.ndarray:
    """Which of these clocks, one per row, know of all the arrivals."""
    known = np.full(len(clocks), arrivals is not None)
    for agents, epochs in arrivals or ():
        known &= (clocks[:, agents] >= epochs).all(1)
    return known
