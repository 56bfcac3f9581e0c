"""One side of a race: an access by a thread, or by an asynchronous unit on behalf of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Access:
    """One side of a pair."""

    kind: str  # "thread" or the kind of a queue
    agent: int
    epoch: int
    row: int
    verb: str
    cluster: int = 0  # number + 1
    detail: str = ""  # tensor and tile coordinates of a TMA copy
    by: Any = None  # agent of the thread (its warp's first, for tcgen05.ld / st and wgmma) that made it

    def warp(self, races) -> int | None:
        """Of the cluster, of the thread that made it; None where none did."""
        return None if self.by is None else races.clocks.warp_of(self.by)

    def issuer(self, races, other, op=None) -> int | None:
        """Agent of the thread that issued it. op: the work itself; other: work that is not it."""
        if self.kind in ("thread", "other"):
            return self.agent if self.kind == "thread" else None
        owner = races.clocks.queue(self.agent).owner
        if self.kind in ("ld", "st", "wgmma"):
            return races.clocks.first_agent(owner)
        if self.kind != "bytes":
            return owner
        op = op or races.transfers.find(self.agent, self.epoch, self.row, other)
        return op.thread if op is not None else None
