"""Stages that threads fill. Each side should wait for an element before it signals the one of the same
index: if only one side does not, that side is at fault, whichever access came first in this run.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.diagnosis.case import case_of
from ptxsim.checks.diagnosis.deadlock.nameless import array_names
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.rivals import index_of
from ptxsim.checks.phrases import copies_of
from ptxsim.checks.race.access import Access
from ptxsim.checks.race.barrier_record import BarrierStep
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.wording import line_text
from ptxsim.checks.static_flow import comes_first, way_without_barrier
from ptxsim.events.records import Place

_WRITERS, _READERS = ("thread", "cp.async"), ("thread", "mma", "wgmma", "cp")


class Side(NamedTuple):
    """One side of the ring, at one of the two accesses."""

    access: Access
    steps: list[BarrierStep]  # its steps at barriers of the ring, in order
    awaits: str  # the array that it waits for


def out_of_ring(races: RaceDetector, pair: AccessPair) -> Reason | None:
    kinds = {pair.first.verb: pair.first.kind, pair.second.verb: pair.second.kind}
    one, other = pair.first.warp(races), pair.second.warp(races)
    if pair.space != "shared" or one is None or other is None or one == other:
        return None
    if kinds.get("write") not in _WRITERS or kinds.get("read") not in _READERS:
        return None
    ring = Ring(races)
    sides = [ring.side(pair.first, one, other), ring.side(pair.second, other, one)]
    whole = [side for side in sides if side is not None]
    if len(whole) < len(sides):
        return None
    for judge in (ring.irregular, ring.too_late):
        found = [told for told in map(judge, whole) if told is not None]
        if found:
            return found[0] if len(found) == 1 else None
    return None


class Ring:
    def __init__(self, races: RaceDetector):
        self.races, self.case = races, case_of(races)
        self.names, self.histories = array_names(self.case), self.case.histories

    def array(self, place: Place) -> str:
        return self.names(place[1]).partition("[")[0]

    def arrays(self, warp: int, how: str) -> set[str]:
        """The arrays that a warp "waits" for, or of which it is one of the "signallers"."""
        return {self.array(p) for p, history in self.histories.items() if warp in getattr(history, how)}

    def side(self, access: Access, warp: int, other: int) -> Side | None:
        """One side, if it waits for one array that the other side signals, and the other way round."""
        waits = self.arrays(warp, "waits") & self.arrays(other, "signallers")
        signals = self.arrays(warp, "signallers") & self.arrays(other, "waits")
        if not len(waits) == len(signals) == 1:
            return None
        (awaits,), (answers,) = waits, signals
        arrays = {"wait": awaits, "arrive": answers, "commit": answers, "copy": answers}
        own = (step for step in self.races.clocks.steps if step.warp == warp)
        steps = [s for s in own if any(self.array(p) == arrays.get(s.kind) for p in s.places)]
        return Side(access, steps, awaits)

    def irregular(self, side: Side) -> Reason | None:
        """It signals an element without a wait for that of the same index since its last signal."""
        waited: list[BarrierStep] = []
        last = ""  # kind of its last step
        for step in side.steps:
            index = index_of(self.case, step.places[0])
            if step.kind == "wait":
                waited = [*waited, step] if last == "wait" else [step]
            elif not any(index_of(self.case, wait.places[0]) == index for wait in waited):
                return self._not_waited_for(side, step, index, waited)
            last = step.kind
        return None

    def _not_waited_for(self, side: Side, step: BarrierStep, index: int, waited: list) -> Reason | None:
        places = (p for p in sorted(self.histories) if self.array(p) == side.awaits)
        name = next((self.case.name(p) for p in places if index_of(self.case, p) == index), None)
        if name is None:
            return None
        if waited:
            facts = {
                "other": self.case.name(waited[-1].places[0]),
                "line": line_text(self.races, waited[-1].row),
            }
            return reason("other-turn", waited[-1].row, step.warp, name=name, **facts)
        cause = CAUSES["not-ready" if side.access.verb == "read" else "not-free"]
        text = f"{name} was not waited for before the signal{line_text(self.races, step.row)}"
        return Reason(cause, text, side.access.row, step.warp)

    def too_late(self, side: Side) -> Reason | None:
        """The access stands before the wait that should let it in, even in the first round."""
        program, row = self.races.launch.program, side.access.row
        signals = {step.row for step in side.steps if step.kind != "wait"}
        waits = [step for step in side.steps if step.kind == "wait"]
        behind = [wait for wait in waits if way_without_barrier(program, row, wait.row, signals)]
        if not behind or any(way_without_barrier(program, wait.row, row, signals) for wait in waits):
            return None
        if not comes_first(program, copies_of(program, row), {wait.row for wait in waits}):
            return None
        facts = {"name": self.case.name(behind[0].places[0]), "line": line_text(self.races, behind[0].row)}
        return reason("wait-late", behind[0].row, behind[0].warp, **facts)
