"""One side of a race: an access by a thread, or by an asynchronous unit on behalf of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Access:
    """One of the two accesses of an `AccessPair`."""

    kind: str  # "thread" or the kind of a queue
    agent: int  # in the vector clocks: a thread or a queue
    epoch: int
    row: int
    verb: str
    cluster: int = 0  # index of the cluster + 1
    detail: str = ""  # tensor and tile coordinates of a TMA copy
    by: Any = None  # agent of the thread (its warp's first, for tcgen05.ld / st and wgmma) that made it

    def warp(self, races) -> int | None:
        """The warp of the cluster whose thread made the access; None if no thread is known."""
        return None if self.by is None else races.clocks.warp_of(self.by)

    def issuer(self, races, other, op=None) -> int | None:
        """Agent of the thread that issued the access. op: its asynchronous work, if known; other: work that
        it is not.
        """
        if self.kind in ("thread", "other"):
            return self.agent if self.kind == "thread" else None
        owner = races.clocks.queue(self.agent).owner
        if self.kind in ("ld", "st", "wgmma"):
            return races.clocks.first_agent(owner)
        if self.kind != "bytes":
            return owner
        op = op or races.transfers.find(self.agent, self.epoch, self.row, other)
        return op.thread if op is not None else None
