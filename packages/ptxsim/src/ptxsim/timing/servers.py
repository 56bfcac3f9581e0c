"""What several askers share: a pipe that serves one after another, a bandwidth that is shared on average."""

from __future__ import annotations

import math

RECENT = 2000  # cycles over which a server counts as busy
MOST = 8.0  # times `queue`: at 0.9 of its rate


class Pipe:
    """Serves requests in the order in which they come, one at a time."""

    __slots__ = ("free", "busy")

    def __init__(self):
        self.free = self.busy = 0.0

    def serve(self, at: float, cycles: float) -> float:
        """When a request that comes at `at` and takes `cycles` begins."""
        begin = at if at > self.free else self.free
        self.free = begin + cycles
        self.busy += cycles
        return begin


class Scheduler(Pipe):
    """Goes round: of the runs under way each gets as many cycles, so one that asks for less than the others
    is done before them. What these lose by it, they wait later.
    """

    __slots__ = ("ends",)

    def __init__(self):
        super().__init__()
        self.ends: list[float] = []  # when each of the runs under way ends, with what the others take of it

    def now(self, at: float, cycles: float) -> float:
        """When an instruction alone begins: it passes the runs under way."""
        self.serve(at, cycles)
        return at

    def take_turns(self, at: float, cycles: float) -> float:
        """When a run begins, as if it issued in one piece then."""
        before = [end for end in self.ends if end > at]
        turns = [min(cycles, end - at) for end in before]
        begin = min(self.serve(at, cycles), at + sum(turns))
        self.ends = [end + turn for end, turn in zip(before, turns, strict=True)]
        self.ends.append(begin + cycles)
        return begin


class Share:
    """An SM's share of a bandwidth of the whole chip.

    While an SM asks for nothing others use its share, so it may be served faster later: what counts is the
    mean over `credit` cycles. A read that finds the server busy waits: `queue` cycles at half its rate, and
    `drain` times the share of its time that writes take, since memory does many of these in a row.
    """

    __slots__ = ("rate", "credit", "due", "bytes", "queue", "drain", "busy", "writes", "last")

    def __init__(self, rate: float, credit: float, queue: float = 0.0, drain: float = 0.0):
        self.rate, self.credit, self.queue, self.drain = rate, credit, queue, drain
        self.due = self.bytes = self.busy = self.writes = self.last = 0.0

    def serve(self, at: float, size: float, write: bool = False) -> float:
        """The cycle before which `size` more bytes cannot have come."""
        least = at - self.credit
        self.due = (self.due if self.due > least else least) + size / self.rate
        self.bytes += size
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
        """Cycles that a read waits for others before it is served, by how busy the server has been."""
        queue = min(MOST, self.busy / (1.0 - self.busy)) if self.busy < 1.0 else MOST
        return self.queue * queue + self.drain * min(1.0, self.writes)
