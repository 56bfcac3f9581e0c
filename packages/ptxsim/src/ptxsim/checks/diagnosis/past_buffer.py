"""A load that steps through the stages of one buffer, and with its last stages into the buffer after it."""

from __future__ import annotations

from ptxsim.checks.diagnosis.unseen_arrival import Edge, edge
from ptxsim.checks.phrases import source_line
from ptxsim.checks.race.conflict import AccessPair


def past_buffer(races, pair: AccessPair) -> Edge | None:
    """One side is a load by an instruction that also fills the preceding buffer. Either another instruction
    fills this buffer too, or the conflicting access is no MMA.
    """
    known = races.transfers.known() if pair.space == "shared" else ()
    loads = [op for op in known if op.kind == "load" and op.copy is not None]
    for op, other in (pair.issued, pair.issued[::-1]):
        if op is None or op.kind != "load" or (other is not None and other.row == op.row):
            continue
        offsets = sorted({load.copy.offset for load in loads if load.row == op.row})
        first, *behind = dict.fromkeys(_buffer(races, offset) for offset in offsets) or [""]
        own = any(_buffer(races, load.copy.offset) == pair.buffer for load in loads if load.row != op.row)
        if pair.buffer in behind and (own or "mma" not in (pair.first.kind, pair.second.kind)):
            line = source_line(races.launch.program, op.row)
            return edge("past-buffer", line=line, first=first, buffer=pair.buffer)
    return None


def _buffer(races, offset: int) -> str:
    return races.reporter.shared_name(offset).partition(" + ")[0]
