"""Bulk copies that a thread starts and never waits for: the CTA may end while TMA still reads its memory.

PTX ISA 9.7.9.25.2: a bulk copy belongs to the open group of its thread, commit_group closes it, wait_group
waits for closed groups. Shared memory belongs to a CTA that executes (5.1.7); PTX does not say whether it
outlives the CTA for a copy that still reads. Known chips keep it, so this is a review.
"""

from __future__ import annotations

from collections import defaultdict

from ptxsim.events.observer import Observer
from ptxsim.events.records import BulkCopy
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.report.findings import Reporter

_COMMIT = (
    "cp_async.bulk.commit_group() after the store, then cp_async.bulk.wait_group(0), "
    "by the thread that stored"
)


class BulkCopies(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter

    def start(self, cluster: Cluster) -> None:
        # thread -> stores (buffer, row) of each group that it has not waited for; the last group is open
        self.groups: dict[int, list[list[tuple[str, int]]]] = defaultdict(lambda: [[]])

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> None:
        if copy.kind == "store":
            store = self.reporter.shared_name(copy.offset), split.row
            self.groups[split.thread][-1].append(store)

    def bulk_commit(self, cluster: Cluster, split: Split) -> None:
        for thread in self._storing(split):
            self.groups[thread].append([])

    def bulk_wait(self, cluster: Cluster, split: Split, allowed: int, reading: bool) -> None:
        for thread in self._storing(split):
            *closed, still_open = self.groups[thread]
            kept = closed[max(0, len(closed) - allowed) :] if allowed else []
            self.groups[thread] = [*kept, still_open]

    def _storing(self, split: Split) -> list[int]:
        """Threads of a split that have stored; the groups of all others are empty."""
        return [t for t in self.groups if t >> 5 == split.warp and split.mask >> (t & 31) & 1]

    def finish(self, cluster: Cluster) -> None:
        if cluster.stuck:
            return
        for thread, groups in self.groups.items():
            for group in groups:
                for buffer, row in group:
                    self._report(cluster, thread, buffer, row, committed=group is not groups[-1])

    def _report(self, cluster: Cluster, thread: int, buffer: str, row: int, committed: bool) -> None:
        state = (
            "never waited for" if committed else "in no committed group, so that no wait_group waits for it"
        )
        self.reporter.add(
            "async-pending",
            "review",
            f"the TMA store from {buffer} is {state}: the CTA may end, and its shared memory with it, "
            "while TMA still reads; known chips let the store finish, and the text does not promise it",
            _COMMIT,
            key=("store", buffer),
            at=(cluster, thread // 32 // cluster.warps_per_cta, row),
            buffer=buffer,
        )
