"""Runs the clusters of a launch one after the other, and checks only those that do something new.

A cluster that does, event for event, what an earlier one did needs no second look. One that turns out to be
different is run again from its start, with the checks. That is safe because no cluster writes what it reads;
where it does, or where clusters may conflict in memory that several of them touch, the whole launch is run
again, as `Doubtful` says.
"""

from __future__ import annotations

import itertools

from ptxsim.grid.repeats.recording import Different, Recordings
from ptxsim.machine.cluster_series import ClusterSeries, runs_in_series
from ptxsim.machine.launch_view import Launch

MOST_LONGER, ENOUGH = 2, 100_000  # times the longest, and more: instructions before it is checked instead
MOST_MISSES = 3  # after this many clusters in a row that differ from all recordings, comparing does not pay


class Doubtful(Exception):
    """Something may be wrong with clusters that were only compared: run all again, and check each."""


class Runner:
    """Runs clusters with `run`. `cluster` is the latest one; its counts are the totals up to now."""

    def __init__(self, make, recordings: Recordings | None):
        """make() -> a new Cluster; recordings: None where every cluster is to be checked."""
        self.make, self.cluster, self.recordings = make, make(), recordings
        self.compared = self.misses = 0
        self.own: set[tuple] = set()  # findings within recorded clusters
        self.longest = 0  # warp instructions of a cluster that was checked
        self.series: ClusterSeries | None = None  # made when there is more than one to run

    def run_some(self, rest: range, alone: bool = True) -> tuple[int, bool]:
        """Runs clusters from the first of `rest` on, several where that takes no Python: (how many, whether
        the last one ended).
        """
        if self.series is None and len(rest) > 1 and self.recordings is None and runs_in_series(self.cluster):
            self.series = ClusterSeries(self.cluster)
        if self.series is None:
            return 1, self.run(rest[0], alone)
        ended, stands = self.series.run(rest)
        return (ended + 1, self.cluster.run(alone)) if stands else (ended, True)

    def run(self, index: int, alone: bool = True) -> bool:
        """Runs cluster `index`, as Cluster.run does. Where others may help it, no cluster is compared
        (`comparable`).

        A cluster that an earlier one has taken over is not run.

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
        """Whether the cluster did what an earlier one did. If not, everything is as it was before."""
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
        """Runs the cluster with all checks. Others may be compared with it if it has no error."""
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
    """Whether clusters of a launch may be compared: all the memory that they share has one address."""
    rows = sorted((host, host + end - base) for base, end, host, _ in launch.memory.rows)
    aliases = any(end > later for (_, end), (later, _) in itertools.pairwise(rows))
    return not aliases and not launch.talkative
