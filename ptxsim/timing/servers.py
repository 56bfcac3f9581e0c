"""What several askers share: a pipe that serves one after another, a bandwidth that is shared on average."""

from __future__ import annotations


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

    def slip_in(self, at: float, cycles: float) -> float:
        """A short request between the parts of longer ones: it does not wait, but those do."""
        self.free = (at if at > self.free else self.free) + cycles
        self.busy += cycles
        return at


class Share:
    """An SM's share of a bandwidth of the whole chip.

    While an SM asks for nothing others use its share, so it may be served faster later: what counts is the
    mean over `credit` cycles.
    """

    __slots__ = ("rate", "credit", "due", "bytes")

    def __init__(self, rate: float, credit: float):
        self.rate, self.credit = rate, credit
        self.due = self.bytes = 0.0

    def serve(self, at: float, size: float) -> float:
        """The cycle before which `size` more bytes cannot have come."""
        least = at - self.credit
        self.due = (self.due if self.due > least else least) + size / self.rate
        self.bytes += size
        return self.due
