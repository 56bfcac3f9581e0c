"""Threads that pass shared memory to one another at a barrier, with no barrier after the reads."""

from __future__ import annotations

from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.unseen_arrival import data_flow
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.wording import line_text
from ptxsim.checks.static_flow import way_without_barrier


def written_again(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """In the program's text every path from the write to the read has a barrier, and a path back has none."""
    flow = data_flow(pair)
    if flow is None or pair.space != "shared" or not flow[0].kind == flow[1].kind == "thread":
        return None
    program, (writer, reader) = races.launch.program, (access.row for access in flow)
    if way_without_barrier(program, writer, reader) or not way_without_barrier(program, reader, writer):
        return None
    return reason("written-again", read=line_text(races, reader), write=line_text(races, writer))
