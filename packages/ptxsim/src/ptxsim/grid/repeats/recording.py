"""Records what a checked cluster does, and compares a later one with it, event by event.

A run is a function of what its threads do, and so are the findings of all checks: if a cluster's events have
the keys of one that was checked, in the same order, the findings are the same. A cluster with an error stands
for no other. What the keys leave out, the places in global memory, is checked when the cluster ends
(footprint.py). So the cost of checks is paid once for each sequence of events that clusters go through.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections import deque
from typing import NamedTuple

from ptxsim.checks.race.across_processes import detector
from ptxsim.events.bus import Bus
from ptxsim.grid.repeats.event_keys import COMPARE, OURS, RECORD, end, form, function, state
from ptxsim.grid.repeats.footprint import ClusterFootprint
from ptxsim.grid.repeats.global_rows import GlobalRows
from ptxsim.machine.cluster import Cluster
from ptxsim.report.findings import Finding, Reporter

MOST_WAYS = 8  # sequences of events of a launch's clusters that are recorded, to compare with
MOST_EVENTS = 400_000  # of a cluster that is recorded; of all of them, before the last one
MOST_BYTES = 1 << 26  # of the accesses that its threads make; the same


class Different(Exception):
    """The cluster does something that none of the recorded ones did at this point."""


class Known(NamedTuple):
    """A cluster that was checked."""

    keys: list[tuple]  # of its events
    reviews: dict[tuple, Finding]  # each with its count in this cluster


class Listener:
    """Hears the events of a cluster in place of a Bus; its methods are those of Observer."""

    heard, in_place = True, False

    def __init__(self, checker: Bus, start, finish, listeners: dict):
        self.observers, self.start, self.finish = checker.observers, start, finish
        for name, listener in listeners.items():
            setattr(self, name, listener)


class Recordings:
    """The clusters of a launch that were checked, in one process.

    `recorder` and `comparer` are what a Cluster's `bus` may be: the first tells the checker too, the
    second raises Different.
    """

    def __init__(self, checker: Bus):
        self.checker = checker
        races = detector(checker)
        assert races is not None  # of every launch that is checked
        self.footprint = ClusterFootprint(races.history, MOST_BYTES)
        self.separate = GlobalRows(self.footprint.group_of_row)
        self.known: list[Known] = []
        self.held = 0  # bytes of the accesses of those
        space = {"state": state, "form": form, "inside": self._inside}
        space |= {"box": self.footprint.box, "map_of": self.footprint.map_of, "differs": self._differs}
        self.recording, self.comparing = dict(space), dict(space)  # what the listeners see as global names
        record = {name: function(name, RECORD, self.recording, getattr(checker, name)) for name in OURS}
        compare = {name: function(name, COMPARE, self.comparing) for name in OURS}
        self.recorder = Listener(checker, self._start_recording, self._finish_recording, record)
        self.comparer = Listener(checker, self._start_comparing, self._finish_comparing, compare)

    def _start(self, listeners: dict) -> None:
        listeners["tokens"] = itertools.count().__next__
        self.footprint.clear()
        self.bytes = 0

    def _inside(self, log) -> bytes:
        own, outside = self.separate(log)
        if outside is not None:
            self.footprint.add(outside)
        self.bytes += len(own)
        return own if self.bytes < MOST_BYTES else b""

    def may_go_again(self, cluster: Cluster) -> bool:
        """Whether a cluster that stopped anywhere would do the same if run again: it writes nothing that it
        reads.
        """
        self._inside(cluster.access_log[cluster.told : cluster.logged()])
        return not self.footprint.overlap()

    # ---- recording ----

    def _start_recording(self, cluster: Cluster) -> None:
        self._start(self.recording)
        self.keys: deque[tuple] = deque(maxlen=MOST_EVENTS)
        self.recording["append"] = self.keys.append
        self.checker.start(cluster)

    def _finish_recording(self, cluster: Cluster) -> None:
        self.keys.append(end(cluster))
        self.checker.finish(cluster)

    def keep(self, reviews: dict[tuple, Finding]) -> bool:
        """Keeps the cluster just recorded, with its findings; False if it cannot stand for others."""
        if any(finding.severity != "review" for finding in reviews.values()):
            return False
        if len(self.keys) == MOST_EVENTS or self.bytes >= MOST_BYTES or not self.footprint.apart():
            return False
        self.known.append(Known([*self.keys], reviews))
        self.held += self.bytes
        return True

    def full(self) -> bool:
        """Whether there are enough recordings, by number or by size."""
        events = sum(len(one.keys) for one in self.known)
        return len(self.known) >= MOST_WAYS or events >= MOST_EVENTS or self.held >= MOST_BYTES

    # ---- comparing ----

    def _start_comparing(self, cluster: Cluster) -> None:
        self._start(self.comparing)
        self._follow(self.known[-1], 0)

    def _follow(self, one: Known, at: int) -> None:
        """From event number `at` on, the cluster should do what this recording did."""
        self.followed, self.rest = one, iter(one.keys[at:])
        self.comparing["following"] = self.rest.__next__

    def _differs(self, key: tuple) -> None:
        """Another recording may agree up to here and continue with this event."""
        followed = self.followed.keys
        at = len(followed) - operator.length_hint(self.rest) - 1
        for one in self.known:
            if len(one.keys) > at and one.keys[at] == key and one.keys[:at] == followed[:at]:
                self._follow(one, at + 1)
                return
        raise Different

    def stands_for(self, reviews: dict[tuple, Finding]) -> bool:
        """Whether the recorded cluster found all that the compared one did without the checks."""
        theirs = self.followed.reviews
        return all(i in theirs and f.count <= theirs[i].count for i, f in reviews.items())

    def repeat(self, reporter: Reporter) -> None:
        """Reports what the recorded cluster found for the compared one."""
        again = {identity: dataclasses.replace(f) for identity, f in self.followed.reviews.items()}
        reporter.absorb(Reporter.of(again, []))

    def _finish_comparing(self, cluster: Cluster) -> None:
        key = end(cluster)
        if next(self.rest) != key:
            self._differs(key)
