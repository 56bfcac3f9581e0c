"""A CTA must have started before its peers use its shared memory. It must keep running, with its tensor
memory allocated, until they are done with both.

Each CTA of a cluster has one clock, which ticks when the CTA releases (arrives, commits, starts a copy). What
a CTA then waits for tells it the clocks of the CTAs that signalled. If a peer touches this CTA at the peer's
time t, this CTA must know of that peer's time t or later when it ends (shared memory, mbarriers: PTX ISA
5.1.4, 9.7.13.15) and when it frees tensor memory of a pair (9.7.16.5). A CTA that loads from a peer or stores
to it must already know some time of that peer. CTAs are coarser than threads, so this misses cases but
invents none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.causes.cause import Cause
from ptxsim.checks.phrases import source_line
from ptxsim.checks.static_flow import unwaited_arrival
from ptxsim.events.observer import Observer
from ptxsim.events.records import Arrival, BulkCopy, Commit, PhaseWait, TmemCells
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.isa.address_map import RANK_SHIFT, SHARED_BASE, SHARED_END
from ptxsim.jit import bytecode
from ptxsim.jit.compiled import compiled
from ptxsim.machine.split import first_lane
from ptxsim.report.findings import Reporter

_START = (
    "all CTAs of the cluster must have started before any of them uses another one's shared memory: "
    "synchronise them first (barrier.cluster.arrive and barrier.cluster.wait)"
)
_FLAGS = {"acquire", "volatile", "relaxed"}  # loads that can wait for a flag in memory


@dataclass(frozen=True)
class Freed:
    """A dealloc for a pair of CTAs, and what its CTA knew of the others at that moment."""

    knew: np.ndarray
    row: int
    text: str
    tmem: int  # time of its own CTA's last access to tensor memory


@compiled()
def remote_rows(log, warps, rows):
    """rows[cta, rank]: the last row at which a thread of `cta` accesses the shared memory of `rank`.

    True if there is any such access.
    """
    found = False
    for i in range(len(log)):
        place = log[i, bytecode.LOG_PLACE]
        if SHARED_BASE <= place < SHARED_END:
            rank = (place - SHARED_BASE) >> RANK_SHIFT
            cta = log[i, bytecode.LOG_THREAD] // 32 // warps
            if rank != cta:
                rows[cta, rank] = log[i, bytecode.LOG_ROW]
                found = True
    return found


class Peers(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter
        flags = any(i.op in ("ld", "atom") and _FLAGS & set(i.mods) for i in launch.program.by_row.values())
        self.on = launch.ctas_per_cluster > 1 and not flags

    def start(self, cluster: Cluster) -> None:
        n = cluster.ctas
        self.now = np.ones(n, np.int64)
        self.knows = np.zeros((n, n), np.int64)  # [x, y]: the time of y that x has learnt of
        self.open: dict[object, np.ndarray] = {}  # barrier -> clocks of those who signalled the current phase
        self.done: dict[object, np.ndarray] = {}  # barrier -> those of completed phases
        # (from, to, what, offset of the object it names) -> (time, row) of the last touch
        self.touches: dict[tuple[int, int, str, int], tuple[int, int]] = {}
        self.unmet: dict[tuple[int, int], int] = {}  # (from, to) -> row of an access before they synchronised
        self.tmem = np.zeros(n, np.int64)  # time of each CTA's last access to its tensor memory
        self.freed: dict[int, Freed] = {}
        self.rows = np.full((n, n), -1, np.int64)
        self.place: object = None  # barrier of the last arrival or wait

    # ---- clocks ----

    def _release(self, cta: int) -> np.ndarray:
        self.knows[cta, cta] = self.now[cta]
        self.now[cta] += 1
        return self.knows[cta].copy()

    def _signal(self, key, clock: np.ndarray) -> None:
        known = self.open.get(key)
        self.open[key] = clock if known is None else np.maximum(known, clock)

    def _complete(self, key) -> None:
        clock = self.open.pop(key, None)
        if clock is not None:
            self.done[key] = np.maximum(self.done.get(key, 0), clock)

    def _learn(self, cta: int, key) -> None:
        if key in self.done:
            np.maximum(self.knows[cta], self.done[key], out=self.knows[cta])

    def _touch(self, source: int, target: int, what: str, row: int, offset: int = 0, age: int = 0) -> None:
        """Records that one CTA touches another. `what`: text with {} for the name of the object at
        `offset`. `age`: how often the source has released since.
        """
        self.touches[source, target, what, offset] = self.now.item(source) - age, row

    # ---- events ----

    def mbarrier_arrive(self, cluster: Cluster, split: Split, arrival: Arrival) -> None:
        place = arrival.place
        if self._repeats(split, first_lane(arrival.lanes), place):
            return
        if split.cta != place[0]:
            self._touch(split.cta, place[0], "arrives on {}", split.row, place[1])
        self._signal(place, self._release(split.cta))

    def _repeats(self, split: Split, lane: int, place) -> bool:
        """Whether another lane does what the leader of its split has just done."""
        if lane == split.leader or place != self.place:
            self.place = place
            return False
        return True

    def _signals(self, split: Split, kind: str, places) -> None:
        """Called after the load or commit was issued, and so after its release."""
        for rank, offset in places:
            if rank != split.cta:
                self._touch(split.cta, rank, f"signals {{}} ({kind})", split.row, offset, age=1)

    def commit_issue(self, cluster: Cluster, split: Split, commit: Commit) -> np.ndarray:
        clock = self._release(split.cta)
        self._signals(split, "commit", commit.barriers)
        return clock

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> np.ndarray:
        for rank in (r for r in copy.ranks if r != split.cta):
            self._touch(split.cta, rank, "copies to {}", split.row, copy.offset)
        clock = self._release(split.cta)
        self._signals(split, copy.kind, copy.barriers)
        return clock

    def async_arrive(self, cluster: Cluster, place, token) -> None:
        if token is not None:
            self._signal(place, token)

    def phase_complete(self, cluster: Cluster, place) -> None:
        self._complete(place)

    def mbarrier_wait(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        self._learn(split.cta, wait.place)

    def cluster_arrive(self, cluster: Cluster, split: Split, relaxed: bool) -> None:
        self._signal("cluster", self._release(split.cta))

    def cluster_complete(self, cluster: Cluster) -> None:
        self._complete("cluster")

    def cluster_wait(self, cluster: Cluster, split: Split) -> None:
        self._learn(split.cta, "cluster")

    def accesses(self, cluster: Cluster, log: np.ndarray) -> None:
        if remote_rows(log, cluster.warps_per_cta, self.rows):
            for source, target in np.argwhere(self.rows >= 0).tolist():
                row = int(self.rows[source, target])
                self._touch(source, target, "accesses the shared memory", row)
                if not self.knows[source, target]:
                    self.unmet.setdefault((source, target), row)
            self.rows[:] = -1

    def tensor_issue(self, cluster: Cluster, split: Split, work) -> None:
        if work.group == 2:
            what = f"uses its shared and tensor memory in {work.text}"
            self._touch(split.cta, split.cta ^ 1, what, split.row)

    def tmem_access(self, cluster: Cluster, split: Split, cells: TmemCells, write: bool) -> None:
        self.tmem[split.cta] = self.now[split.cta]

    def tmem_free(self, cluster: Cluster, split: Split, start: int, columns: int, group: int) -> None:
        if group == 2:
            text = f"columns {start}..{start + columns - 1}"
            now = self.tmem.item(split.cta)
            self.freed[split.cta] = Freed(self.knows[split.cta].copy(), split.row, text, now)

    # ---- findings ----

    def finish(self, cluster: Cluster) -> None:
        if cluster.stuck:
            return
        ends = [r for r, i in cluster.program.by_row.items() if i.op in ("ret", "exit")]
        for (source, target, touch, offset), (time, row) in self.touches.items():
            if self.knows[target, source] < time:
                what = touch.format(self.reporter.shared_name(offset))
                message = (
                    f"CTA {source} {what} of CTA {target}, but nothing keeps CTA {target} from having ended"
                )
                self._unfinished(cluster, source, row, what, message, CAUSES["early-exit"], "the end", ends)
        for (source, target), row in self.unmet.items():
            message = (
                f"CTA {source} accesses the shared memory of CTA {target}, but nothing tells it that CTA "
                f"{target} has started (CUDA C++ Programming Guide, Distributed Shared Memory)"
            )
            self._unfinished(cluster, source, row, "start", message, _START, "this access", [row])
        for cta, freed in self.freed.items():
            if cta ^ 1 < cluster.ctas and freed.knew[cta ^ 1] < self.tmem[cta ^ 1]:
                self._freed_early(cluster, cta, freed)

    def _unfinished(
        self, cluster: Cluster, cta: int, row: int, key: str, message: str, hint: str | Cause, what: str, rows
    ) -> None:
        """A finding, with the arrival at the barrier of the cluster that is not waited for before `rows`."""
        arrival = unwaited_arrival(cluster.program, *rows)
        if arrival is not None:
            hint = CAUSES["arrival-unwaited"]
            message += ": " + hint.tell(line=f" ({source_line(cluster.program, arrival)})", what=what)
        self._report(cluster, "cluster", cta, row, key, message, hint=hint)

    def _freed_early(self, cluster: Cluster, cta: int, freed: Freed) -> None:
        """Reports a dealloc before the peer is done: it belongs to the pair (PTX ISA 9.7.16.5). If the
        peer frees too, after its own accesses, chips are known to give right results, and CUTLASS's
        tutorials rely on it.
        """
        peer = cta ^ 1
        other = self.freed.get(peer)
        together = other is not None and (other.text, other.tmem) == (freed.text, self.tmem[peer])
        message = (
            f"tcgen05.dealloc of {freed.text} in CTA {cta} with cta_group 2, while CTA {peer} may still "
        )
        message += "read its half of them"
        if together:
            message += f"; CTA {peer} frees them behind its own reads, which known chips wait for"
        severity = "review" if together else "error"
        self._report(cluster, "tmem-alloc", cta, freed.row, "free", message, severity)

    def _report(
        self,
        cluster: Cluster,
        kind: str,
        cta: int,
        row: int,
        key: str,
        message: str,
        severity: str = "error",
        hint: str | Cause = CAUSES["early-exit"],
    ) -> None:
        at = cluster, cta, row
        self.reporter.add(kind, severity, message, hint, key=(kind, key), at=at)
