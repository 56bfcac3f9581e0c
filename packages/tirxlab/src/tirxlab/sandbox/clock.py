"""The time that processes had for their work, however busy the machine is."""

from __future__ import annotations

import time

from tirxlab.sandbox import tree

MOST = 20  # times the limit, in wall time, after which a machine counts as too busy


class Starved(RuntimeError):
    """The machine gave the work too little time to tell how long it takes."""


class Clock:
    """A limit on the time of a process and of all processes that it starts.

    CPU time counts, or the wall time in which none of them waited for a processor if that is more, so that
    sleeping gains nothing. Where that cannot be measured (not Linux), wall time counts.
    """

    def __init__(self, pid: int, seconds: float):
        self.pid, self.seconds, self.start = pid, seconds, time.monotonic()
        self.cpu, self.queued = tree.cpu_seconds(pid), tree.queued(pid)
        self.next = self.start + seconds  # when to look again: the time cannot be up sooner

    def left(self) -> float:
        """Seconds until `over` need be asked again."""
        return max(0.0, self.next - time.monotonic())

    def spent(self) -> float:
        """The seconds that count so far; wall time if the process is gone."""
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
