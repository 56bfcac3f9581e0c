"""Bulk copies that a thread starts and never waits for: the CTA may end while TMA still reads its memory.

PTX ISA 9.7.9.25.2: a bulk copy belongs to the open group of its thread, commit_group closes it, wait_group
waits for closed groups. Shared memory belongs to a CTA that executes (5.1.7); whether it outlives the CTA for
a copy that still reads, the text does not say. Known chips keep it, so this is a review.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxsim.events.observer import Observer
from ptxsim.events.records import BulkCopy
from ptxsim.events.views import Cluster, Launch, Split

_COMMIT = (
    "cp_async.bulk.commit_group() after the store, then cp_async.bulk.wait_group(0), "
    "by the thread that stored"
)


@dataclass
class Group:
    stores: list[tuple[str, int]] = field(default_factory=list)  # (buffer, row)
    committed: bool = False


class BulkCopies(Observer):
    def __init__(self, launch: Launch, reporter):
        self.reporter = reporter

    def start(self, cluster: Cluster) -> None:
        self.groups: dict[int, list[Group]] = {}  # thread -> groups it has not waited for

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> None:
        if copy.kind == "store":
            self._open(split.thread).stores.append((self.reporter.shared_name(copy.offset), split.row))

    def _open(self, thread: int) -> Group:
        groups = self.groups.setdefault(thread, [])
        if not groups or groups[-1].committed:
            groups.append(Group())
        return groups[-1]

    def bulk_commit(self, cluster: Cluster, split: Split) -> None:
        self._open(split.thread).committed = True

    def bulk_wait(self, cluster: Cluster, split: Split, allowed: int, reading: bool) -> None:
        for lane in split.lanes:
            groups = self.groups.get(split.warp * 32 + int(lane), [])
            closed = [g for g in groups if g.committed]
            kept = closed[len(closed) - allowed :] if allowed else []
            groups[:] = kept + [g for g in groups if not g.committed]

    def finish(self, cluster: Cluster) -> None:
        if cluster.stuck:
            return
        for thread, groups in self.groups.items():
            for group in groups:
                for buffer, row in group.stores:
                    self._report(cluster, thread, buffer, row, group.committed)

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
