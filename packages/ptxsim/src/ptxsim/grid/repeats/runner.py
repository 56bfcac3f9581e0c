"""Runs the clusters of a launch one after the other, and checks only those that do something new.

A cluster that does, event for event, what an earlier one did need not be checked. One that turns out to be
different runs again from its start, with the checks. That is safe if it writes no buffer that it reads;
otherwise, or if clusters may conflict in memory that several of them access, the whole launch runs again with
all checks (`Doubtful`).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ptxsim.grid.repeats.event_keys import Different
from ptxsim.machine.cluster_series import ClusterSeries, runs_in_series
from ptxsim.machine.launch_view import Launch

if TYPE_CHECKING:  # it imports the race detector
    from ptxsim.grid.repeats.recording import Recordings

MOST_LONGER, ENOUGH = 2, 100_000  # a compared cluster may run MOST_LONGER * longest + ENOUGH instructions
MOST_MISSES = 3  # consecutive clusters that differ from all recordings, after which comparing does not pay


class Doubtful(Exception):
    """Clusters that were only compared may have errors: the launch must run again with every one checked."""


class Runner:
    """Runs clusters with `run`. `cluster` is the latest one; its counts are the totals so far."""

    def __init__(self, make, recordings: Recordings | None):
        """make() -> a new Cluster; recordings: None if every cluster must be checked."""
        self.make, self.cluster, self.recordings = make, make(), recordings
        self.compared = self.misses = 0
        self.own: set[tuple] = set()  # findings within recorded clusters
        self.longest = 0  # warp instructions of a cluster that was checked
        self.series: ClusterSeries | None = None  # made when there is more than one to run

    def run_some(self, rest: range, alone: bool = True) -> tuple[int, bool]:
        """Runs one or more clusters from the first of `rest` on, several if that needs no Python. Returns
        (how many, whether the last one ended).
        """
        if self.series is None and len(rest) > 1 and self.recordings is None and runs_in_series(self.cluster):
            self.series = ClusterSeries(self.cluster)
        if self.series is None:
            return 1, self.run(rest[0], alone)
        ended, stands = self.series.run(rest)
        return (ended + 1, self.cluster.run(alone)) if stands else (ended, True)

    def run(self, index: int, alone: bool = True) -> bool:
        """Runs cluster `index`, as Cluster.run does, unless an earlier cluster has taken it over.

        If clusters may help each other, none is compared (`comparable`).
        """
        if not self.cluster.launch.not_started.begin(index):
            return True
        if self.recordings is None:
            self.cluster.start(index)
            return self.cluster.run(alone)
        if self.recordings.known and self.misses < MOST_MISSES and self._repeats(index):
            return True
        return self._check(index)

    def _repeats(self, index: int) -> bool:
        """Runs cluster `index`; whether it did what an earlier one did. If not, undoes its effects."""
        cluster, recordings = self.cluster, self.recordings
        assert recordings is not None
        counts, printed = cluster.counts(), len(cluster.reporter.printed)
        queue = cluster.launch.not_started
        left, snapshot = queue.snapshot(), cluster.reporter.snapshot()
        cluster.bus = recordings.comparer
        try:
            cluster.start(index)
            cluster.watchdog.allow(MOST_LONGER * self.longest + ENOUGH)
            cluster.run()
            same = recordings.stands_for(cluster.reporter.since(snapshot))
        except Different:
            same = False
        if same and recordings.footprint.apart() and not recordings.footprint.enter(index):
            cluster.reporter.restore(snapshot)
            recordings.repeat(cluster.reporter)
            self.compared, self.misses = self.compared + 1, 0
            return True
        if same or not recordings.may_go_again(cluster):
            raise Doubtful
        queue.restore(left)
        del cluster.reporter.printed[printed:]
        cluster.reporter.restore(snapshot)
        self.misses += 1
        self.cluster = self.make()
        self.cluster.count_from(*counts)
        return False

    def _check(self, index: int) -> bool:
        """Runs cluster `index` with all checks; records it for comparisons if it has no error."""
        cluster, recordings = self.cluster, self.recordings
        assert recordings is not None
        recording = not recordings.full() and self.misses < MOST_MISSES
        cluster.bus = recordings.recorder if recording else recordings.checker
        before, snapshot = cluster.executed(), cluster.reporter.snapshot()
        cluster.start(index)
        ended = cluster.run()
        self.longest = max(self.longest, cluster.executed() - before)
        found = cluster.reporter.since(snapshot)
        if self.compared and any(f.kind == "race" and i not in self.own for i, f in found.items()):
            raise Doubtful
        if recording and recordings.keep(found):
            self.own.update(found)
        else:
            self.misses = MOST_MISSES
            recordings.known.clear()
        return ended


def comparable(launch: Launch) -> bool:
    """Whether clusters of a launch may be compared: no arrays overlap, and clusters do not communicate."""
    rows = sorted((host, host + end - base) for base, end, host, _ in launch.memory.rows)
    aliases = any(end > later for (_, end), (later, _) in itertools.pairwise(rows))
    return not aliases and not launch.talkative
