"""Shared resources: pipes that serve one request after another, and bandwidths that are shared on average."""

from __future__ import annotations

import math

RECENT = 2000  # cycles over which the utilisation of a server is averaged
MOST = 8.0  # longest wait, in multiples of `queue`: that at 0.9 of the rate


class Pipe:
    """Serves requests one at a time, in order of arrival."""

    __slots__ = ("free", "busy")

    def __init__(self):
        self.free = self.busy = 0.0

    def serve(self, at: float, cycles: float) -> float:
        """When a request that arrives at `at` and takes `cycles` starts to be served."""
        begin = at if at > self.free else self.free
        self.free = begin + cycles
        self.busy += cycles
        return begin


class Scheduler(Pipe):
    """Serves runs in turns: each active run gets equally many cycles, so a run that needs fewer than the
    others is done before them. The others end later by the cycles that it took.
    """

    __slots__ = ("ends",)

    def __init__(self):
        super().__init__()
        self.ends: list[float] = []  # when each active run ends, given the turns of the others

    def now(self, at: float, cycles: float) -> float:
        """When a single instruction starts: at once, ahead of the active runs."""
        self.serve(at, cycles)
        return at

    def take_turns(self, at: float, cycles: float) -> float:
        """When a run starts, as if it were then issued without interruption."""
        before = [end for end in self.ends if end > at]
        turns = [min(cycles, end - at) for end in before]
        begin = min(self.serve(at, cycles), at + sum(turns))
        self.ends = [end + turn for end, turn in zip(before, turns, strict=True)]
        self.ends.append(begin + cycles)
        return begin


class Share:
    """An SM's share of a bandwidth of the whole chip.

    While an SM requests nothing, others use its share, so it may be served faster later: the rate is kept on
    average over `credit` cycles. A read that finds the server busy waits: `queue` cycles at half of the rate,
    and `drain` cycles times the share of its time that writes take, because memory does many writes in a row.
    """

    __slots__ = ("rate", "credit", "due", "queue", "drain", "busy", "writes", "last")

    def __init__(self, rate: float, credit: float, queue: float = 0.0, drain: float = 0.0):
        self.rate, self.credit, self.queue, self.drain = rate, credit, queue, drain
        self.due = self.busy = self.writes = self.last = 0.0

    def serve(self, at: float, size: float, write: bool = False) -> float:
        """The earliest cycle by which `size` more bytes can have arrived."""
        least = at - self.credit
        self.due = (self.due if self.due > least else least) + size / self.rate
        if at > self.last:
            less = math.exp((self.last - at) / RECENT)
            self.busy *= less
            self.writes *= less
            self.last = at
        share = size / self.rate / RECENT
        self.busy += share
        self.writes += share * write
        return self.due

    def waits(self) -> float:
        """Cycles that a read waits for other requests, from how busy the server has recently been."""
        queue = min(MOST, self.busy / (1.0 - self.busy)) if self.busy < 1.0 else MOST
        return self.queue * queue + self.drain * min(1.0, self.writes)
