"""Records the events of a checked cluster, and compares later clusters with it, event by event.

The findings of all checks are a function of the cluster's events: if a cluster's events have the same keys in
the same order as those of a checked one, its findings are the same. A cluster with an error cannot represent
others. The keys leave out addresses in global memory; these are checked when the cluster ends (footprint.py).
So the cost of the checks is paid only once for each distinct sequence of events.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections import deque
from typing import NamedTuple

from ptxsim.checks.race.across_processes import detector
from ptxsim.events.bus import Bus
from ptxsim.grid.repeats.event_keys import COMPARE, OURS, RECORD, Different, end, form, function, state
from ptxsim.grid.repeats.footprint import ClusterFootprint
from ptxsim.grid.repeats.global_rows import GlobalRows
from ptxsim.machine.cluster import Cluster
from ptxsim.report.findings import Finding, Reporter
from ptxsim.report.merging import absorb

MOST_WAYS = 8  # most recordings, of distinct sequences of events, that are kept in a launch
MOST_EVENTS = 400_000  # most events of a recording; with this many in all recordings, no more are made
MOST_BYTES = 1 << 26  # the same for bytes of the threads' accesses


class Known(NamedTuple):
    """A cluster that was checked."""

    keys: list[tuple]  # of its events
    reviews: dict[tuple, Finding]  # its findings, all of severity `review`, with their counts in this cluster


class Listener:
    """Receives the events of a cluster in place of a Bus; its methods are those of Observer."""

    heard, in_place = True, False

    def __init__(self, checker: Bus, start, finish, listeners: dict):
        self.observers, self.start, self.finish = checker.observers, start, finish
        for name, listener in listeners.items():
            setattr(self, name, listener)


class Recordings:
    """The recorded clusters of a launch, in one process.

    `recorder` and `comparer` can be the `bus` of a Cluster: the first also passes events to the checker, the
    second raises Different.
    """

    def __init__(self, checker: Bus):
        self.checker = checker
        races = detector(checker)
        assert races is not None  # every checked launch has one
        self.footprint = ClusterFootprint(races.history, MOST_BYTES)
        self.separate = GlobalRows(self.footprint.group_of_row)
        self.known: list[Known] = []
        self.held = 0  # bytes of their accesses
        space = {"state": state, "form": form, "inside": self._inside}
        space |= {"box": self.footprint.box, "map_of": self.footprint.map_of, "differs": self._differs}
        self.recording, self.comparing = dict(space), dict(space)  # global names of the listeners
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
        """Whether a cluster that stopped midway would do the same if run again, because it has not written
        to any buffer that it reads.
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
        """Keeps the recording just made, with its findings; False if it cannot represent other clusters."""
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
        """Compares the cluster with this recording, from event number `at` on."""
        self.followed, self.rest = one, iter(one.keys[at:])
        self.comparing["following"] = self.rest.__next__

    def _differs(self, key: tuple) -> None:
        """Switches to a recording that agrees so far and continues with this event; else raises Different."""
        followed = self.followed.keys
        at = len(followed) - operator.length_hint(self.rest) - 1
        for one in self.known:
            if len(one.keys) > at and one.keys[at] == key and one.keys[:at] == followed[:at]:
                self._follow(one, at + 1)
                return
        raise Different

    def stands_for(self, reviews: dict[tuple, Finding]) -> bool:
        """Whether the recorded cluster has all findings that the compared one made without the checks."""
        theirs = self.followed.reviews
        return all(i in theirs and f.count <= theirs[i].count for i, f in reviews.items())

    def repeat(self, reporter: Reporter) -> None:
        """Reports the findings of the recorded cluster for the compared one."""
        again = {identity: dataclasses.replace(f) for identity, f in self.followed.reviews.items()}
        absorb(reporter, Reporter.of(again))

    def _finish_comparing(self, cluster: Cluster) -> None:
        key = end(cluster)
        if next(self.rest) != key:
            self._differs(key)
