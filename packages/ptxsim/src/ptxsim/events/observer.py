"""What a run tells its observers. Every method is called by the machine; an observer overrides what it needs.

Places of barriers are (CTA rank, window offset). A token is what `*_issue` returned: the machine hands it
back when the work it belongs to reads, writes or completes. Handlers call these before the state changes,
except where the name says `complete`.
"""

from __future__ import annotations

import numpy as np

from ptxsim.events.records import (
    Arrival,
    BarArrival,
    BulkCopy,
    Commit,
    CopyArrival,
    Fence,
    PhaseWait,
    SharedSpan,
    TensorWork,
    TmemCells,
)


class Observer:
    parts: tuple[Observer, ...] = ()  # observers that belong to this one; events reach them after this one
    on = True  # False: the launch has nothing that this one could observe

    def start(self, cluster) -> None:
        """A cluster begins; its state is fresh."""

    def finish(self, cluster) -> None:
        """All threads of the cluster have ended, or are stuck."""

    def accesses(self, cluster, log: np.ndarray) -> None:
        """Generic loads and stores since the last call: int64 (n, 4) of row, thread, place, 2 * bytes + is
        write.

        place: address of global memory, or SHARED_BASE + (rank << RANK_SHIFT) + window offset.
        """

    # threads
    def fence(self, cluster, split, fence: Fence) -> None: ...
    def warp_sync(self, cluster, split, members: int) -> None: ...
    def bar_arrive(self, cluster, split, arrival: BarArrival) -> None: ...
    def bar_complete(self, cluster, cta: int, number: int, waiting: list) -> None: ...
    def cluster_arrive(self, cluster, split, relaxed: bool) -> None: ...
    def cluster_complete(self, cluster) -> None: ...
    def cluster_wait(self, cluster, split) -> None: ...

    # mbarriers
    def mbarrier_init(self, cluster, split, lane: int, place) -> None: ...
    def mbarrier_arrive(self, cluster, split, arrival: Arrival) -> None: ...
    def mbarrier_wait(self, cluster, split, wait: PhaseWait) -> None:
        """A wait found the phase it asked for complete."""

    def mbarrier_blocked(self, cluster, split, wait: PhaseWait) -> None:
        """A wait found the phase it asked for still open; called each time it looks."""

    def phase_complete(self, cluster, place) -> None: ...
    def async_arrive(self, cluster, place, token) -> None:
        """Bytes of a copy, or a tcgen05.commit, reach a barrier."""

    # tensor memory
    def tmem_alloc(self, cluster, split, start: int, columns: int, place, group: int) -> None: ...
    def tmem_free(self, cluster, split, start: int, columns: int, group: int) -> None: ...
    def tmem_issue(self, cluster, split, cells: TmemCells, write: bool) -> None:
        """A tcgen05.ld, or st if it writes."""

    def tmem_access(self, cluster, split, cells: TmemCells, write: bool) -> None:
        """It touches its cells. split: where it was issued."""

    def tmem_wait(self, cluster, split, kind: str) -> None: ...
    def tcgen05_fence(self, cluster, split, after: bool) -> None: ...
    def commit_issue(self, cluster, split, commit: Commit): ...
    def tensor_issue(self, cluster, split, work: TensorWork) -> None: ...
    def tensor_execute(self, cluster, works: list) -> None:
        """A tensor core executes this work; several items if they are MMAs of one thread that accumulate into
        one D.
        """

    # TMA, bulk copies, st.async
    def copy_issue(self, cluster, split, copy: BulkCopy): ...
    def copy_read(self, cluster, token, copy: BulkCopy) -> None:
        """It reads its source in shared memory."""

    def copy_write(self, cluster, token, copy: BulkCopy) -> None:
        """It writes its targets, or a store its box; a load from global memory also reads its source now."""

    def bulk_commit(self, cluster, split) -> None: ...
    def bulk_wait(self, cluster, split, allowed: int, reading: bool) -> None: ...

    # cp.async; rows as those of `accesses`
    def cp_async_issue(self, cluster, split, reads: np.ndarray, writes: np.ndarray): ...
    def cp_async_copy(self, cluster, token) -> None:
        """The copies of one instruction are made now."""

    def cp_async_signal(self, cluster, split, arrival: CopyArrival) -> None:
        """The arrivals are issued; each comes when the copies of its lane are done."""

    def cp_async_arrive(self, cluster, split, place, tokens: list, arrival: CopyArrival) -> None:
        """One lane arrives; `tokens` are those of its copies."""

    def cp_async_wait(self, cluster, split, token) -> None:
        """A wait of the split's lanes covers these copies, which are done."""

    # wgmma; each warp of a warpgroup issues its share
    def wgmma_fence(self, cluster, split) -> None: ...
    def wgmma_issue(self, cluster, split, columns: int, depth: int):
        """A warp's share of a product of 64 rows, with this many columns and depth K."""

    def wgmma_read(self, cluster, token, span: SharedSpan) -> None:
        """The tensor core reads this for a warp's share."""

    def wgmma_wait(self, cluster, split, token) -> None:
        """A wait of the split covers this share, which is complete."""
