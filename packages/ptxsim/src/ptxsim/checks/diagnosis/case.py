"""A cluster under diagnosis: the histories of its barriers, and how messages name them, lines and threads."""

from __future__ import annotations

from collections.abc import Callable

from ptxsim.checks import phrases
from ptxsim.checks.barrier_history import BarrierHistory, held_waits, history_of, ring_of
from ptxsim.checks.diagnosis.number_agreement import role
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.static_flow import wait_rows
from ptxsim.events.records import Place
from ptxsim.events.views import Cluster
from ptxsim.report.findings import Reporter


def case_of(races: RaceDetector) -> Case:
    """The case of the cluster that a race detector has watched."""
    return Case(races.cluster, races.reporter)


class Case:
    def __init__(self, cluster: Cluster, reporter: Reporter):
        self.cluster, self.reporter, self.program = cluster, reporter, cluster.program
        self.histories: dict[Place, BarrierHistory] = history_of(cluster)

    def name(self, place: Place) -> str:
        """`full[1]`."""
        return self.reporter.shared_name(place[1])

    def array(self, place: Place) -> str:
        """`full`."""
        return self.reporter.shared_array(place[1])

    def ring(self, place: Place) -> list[Place]:
        """The elements of the array that a barrier belongs to, in its CTA."""
        return ring_of(self.histories, place, self.reporter.shared_array)

    def answers(self, place: Place) -> list[Place]:
        """The other barriers that those who signal this one wait for."""
        signallers = self.histories[place].signallers
        return [p for p, h in self.histories.items() if p != place and signallers & h.waits.keys()]

    def of_array(self, array: str) -> list[BarrierHistory]:
        """The barriers of an array, in all CTAs of the cluster."""
        return [history for place, history in self.histories.items() if self.array(place) == array]

    def line(self, row: int) -> str:
        """`line 12`."""
        return phrases.source_line(self.program, row)

    def role(self, lanes: dict[int, int]) -> str:
        """`WG1 warp 0`; lanes: warp of the cluster -> mask."""
        return role(self.cluster, lanes)

    def awaited(self, place: Place) -> tuple[list[Place], list[Place]]:
        """Splits the array of a barrier in two: elements that are signalled but that no thread waits at, and
        those that some thread waits at.
        """
        held = {place for _, _, place in held_waits(self.cluster)}
        ring = self.ring(place)
        awaited = [p for p in ring if self.histories[p].waits or p in held]
        return [p for p in ring if p not in awaited and self.histories[p].sources], awaited

    def never_waited(self, array_of: Callable[[int], str] | None = None) -> list[str]:
        """Names of the barrier arrays that are signalled although nothing waits at any of their elements,
        neither in this run nor by the program text. array_of: window offset -> array; default: by the
        reporter's names.

        If there are none: the one array that is initialised and that nothing waits at or signals; with
        several, as in a program that uses only some of its barriers, that explains nothing.
        """
        array_of = array_of or self.reporter.shared_array
        held = {place for _, _, place in held_waits(self.cluster)}
        signalled: dict = {}
        silent: dict = {}
        waited = {array_of(at) for offsets in wait_rows(self.cluster.launch).values() for at in offsets}
        for place, history in self.histories.items():
            array = array_of(place[1])
            if history.waits or place in held:
                waited.add(array)
            else:
                (signalled if history.sources else silent).setdefault(array, self.name(place))
        found = [name for array, name in signalled.items() if array not in waited]
        rest = [name for array, name in silent.items() if array not in waited | set(signalled)]
        return found or (rest if len(rest) == 1 else [])
