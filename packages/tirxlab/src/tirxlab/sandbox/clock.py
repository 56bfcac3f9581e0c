"""Time that processes have had for their work, whatever else the machine does."""

from __future__ import annotations

import time

from tirxlab.sandbox import tree

MOST = 20  # times the limit, in wall time, that work gets on a machine that is too busy to do it


class Starved(RuntimeError):
    """The machine gave the work too little time to tell how long it takes."""


class Clock:
    """A limit on the time of a process and of all that it starts.

    What counts is CPU time, or the wall time in which none of them stood in the queue for a processor: who
    sleeps does not get more of it. Where that cannot be seen (no Linux), wall time counts.
    """

    def __init__(self, pid: int, seconds: float):
        self.pid, self.seconds, self.start = pid, seconds, time.monotonic()
        self.cpu, self.queued = tree.cpu_seconds(pid), tree.queued(pid)
        self.next = self.start + seconds  # when to look again: no sooner can it be over

    def left(self) -> float:
        """Seconds that there is nothing to look after."""
        return max(0.0, self.next - time.monotonic())

    def spent(self) -> float:
        """Seconds that count; of a process that is gone, wall time."""
        waited = max(0.0, tree.queued(self.pid) - self.queued)
        return max(tree.cpu_seconds(self.pid) - self.cpu, time.monotonic() - self.start - waited)

    def over(self) -> bool:
        """Whether the time is up; Starved if the machine never gave it."""
        wall = time.monotonic() - self.start
        if wall < self.seconds:
            return False
        spent = self.spent()
        if spent < self.seconds and wall > MOST * self.seconds:
            raise Starved(f"got too little of this machine in {wall:.0f} s")
        self.next = time.monotonic() + max(0.2, self.seconds - spent)
        return spent >= self.seconds
