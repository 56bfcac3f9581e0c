"""A load that runs into the stage after its own, or steps from one buffer into the buffer after it."""

from __future__ import annotations

import itertools

from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.phrases import source_line
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.wording import barrier_of, line_text
from ptxsim.events.records import Place


def past_stage(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A load that reports to one element of a ring covers where a load for another element begins."""
    loads, array_of = _loads(races, pair), races.reporter.shared_array
    for op in pair.issued:
        if op is None or op.kind != "load" or op.copy is None or not op.copy.barriers:
            continue
        (rank, own), start, size = op.copy.barriers[0], op.copy.offset, op.copy.size
        beside = _beside(loads, op.row, op.copy.barriers)
        for other in loads:
            place, apart = (other.copy.barriers or (None,))[0], other.copy.offset - start
            if place is None or place[0] != rank or place[1] == own or array_of(place[1]) != array_of(own):
                continue
            if 0 < apart < size or apart == 0 and beside.get(other.row, start) < start:
                names = {"name": barrier_of(races, (rank, own)), "other": barrier_of(races, place)}
                lines = {"line": line_text(races, op.row), "behind": line_text(races, other.row)}
                return reason("past-stage", size=size, over=size - apart, **names, **lines)
    return None


def _beside(loads: list, row: int, barriers: tuple[Place, ...]) -> dict[int, int]:
    """Row -> the first byte that it fills of loads for the same barrier, issued right before or after."""
    found: dict[int, int] = {}
    for two in itertools.pairwise(loads):
        if all(load.copy.barriers == barriers for load in two) and row in [load.row for load in two]:
            found |= {load.row: load.copy.offset for load in two}
    return found


def shifted_loads(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """Loads of one line fill a buffer in steps of their size, but not from its start, which is read, although
    no load writes it: each fills the end of one stage and the start of the next.
    """
    known = [op for op in _loads(races, pair) if len(op.copy.targets) == 1]
    errors = races.reporter.by_identity.values()
    unwritten = any((f.kind, f.evidence.get("buffer")) == ("uninitialized", pair.buffer) for f in errors)
    for op in pair.issued if unwritten else ():
        if op is None or op.kind != "load" or op.copy is None:
            continue
        start, _ = races.reporter.shared_extent(op.copy.offset)
        places = sorted({other.copy.offset for other in known if other.row == op.row})
        before = places[0] - start if places else 0
        apart = {two - one for one, two in itertools.pairwise(places)}
        if not 0 < before < op.copy.size or apart != {op.copy.size}:
            continue
        if not any(start <= other.copy.offset < places[0] for other in known):
            facts = {"size": op.copy.size, "before": before, "buffer": pair.buffer}
            return reason("loads-shifted", line=line_text(races, op.row), **facts)
    return None


def past_buffer(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """One side is a load by an instruction that also fills the preceding buffer. Either another instruction
    fills this buffer too, or the conflicting access is no MMA.
    """
    loads = _loads(races, pair)
    for op, other in (pair.issued, pair.issued[::-1]):
        if op is None or op.kind != "load" or (other is not None and other.row == op.row):
            continue
        offsets = sorted({load.copy.offset for load in loads if load.row == op.row})
        first, *behind = dict.fromkeys(_buffer(races, offset) for offset in offsets) or [""]
        own = any(_buffer(races, load.copy.offset) == pair.buffer for load in loads if load.row != op.row)
        if pair.buffer in behind and (own or "mma" not in (pair.first.kind, pair.second.kind)):
            line = source_line(races.launch.program, op.row)
            return reason("past-buffer", line=line, first=first, buffer=pair.buffer)
    return None


def _loads(races: RaceDetector, pair: AccessPair) -> list:
    known = races.transfers.known() if pair.space == "shared" else ()
    return [op for op in known if op.kind == "load" and op.copy is not None]


def _buffer(races: RaceDetector, offset: int) -> str:
    return races.reporter.shared_name(offset).partition(" + ")[0]
