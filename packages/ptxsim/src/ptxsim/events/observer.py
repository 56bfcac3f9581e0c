"""Events of a run, as methods of its observers. The machine calls them; an observer overrides those it needs.

Places of barriers are (CTA rank, window offset). A token is what `*_issue` returned: the machine hands it
back when the work it belongs to reads, writes or completes. Methods are called before the state changes,
except those with `complete` in their names.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ptxsim.events.records import (
    Arrival,
    BarArrival,
    BulkCopy,
    Commit,
    CopyArrival,
    Fence,
    Operand,
    PhaseWait,
    SharedSpan,
    TensorWork,
    TmemCells,
)
from ptxsim.events.views import Cluster, Place, Scheduled, Split

Kind = TypeVar("Kind")


class Observer:
    parts: tuple[Observer, ...] = ()  # observers that belong to this one; events reach them after this one
    on = True  # False: the launch has nothing that this one could observe

    def start(self, cluster: Cluster) -> None:
        """A cluster begins; its state is fresh."""

    def finish(self, cluster: Cluster) -> None:
        """All threads of the cluster have ended, or the cluster is stuck."""

    def accesses(self, cluster: Cluster, log: np.ndarray) -> None:
        """Generic loads and stores since the last call: int64 (n, 4) with columns row, thread, place, 2 *
        bytes + is write.

        place: address of global memory, or SHARED_BASE + (rank << RANK_SHIFT) + window offset.
        """

    def local_accesses(self, cluster: Cluster, log: np.ndarray) -> None:
        """Loads since the last call from a thread's own local memory that it has not written, or only in
        part; the same columns, with place LOCAL_BASE + offset.
        """

    # threads
    def fence(self, cluster: Cluster, split: Split, fence: Fence) -> None: ...
    def warp_sync(self, cluster: Cluster, split: Split, members: int) -> None: ...
    def bar_arrive(self, cluster: Cluster, split: Scheduled, arrival: BarArrival) -> None: ...
    def bar_complete(self, cluster: Cluster, cta: int, number: int, waiting: list[Scheduled]) -> None: ...
    def cluster_arrive(self, cluster: Cluster, split: Split, relaxed: bool) -> None: ...
    def cluster_complete(self, cluster: Cluster) -> None: ...
    def cluster_wait(self, cluster: Cluster, split: Split) -> None: ...

    # mbarriers
    def mbarrier_init(self, cluster: Cluster, split: Split, lane: int, place: Place) -> None: ...
    def mbarrier_arrive(self, cluster: Cluster, split: Split, arrival: Arrival) -> None: ...
    def mbarrier_exceeded(self, cluster: Cluster, split: Split, place: Place, arrivals: int) -> None:
        """Several lanes are about to make more arrivals by one instruction than the phase still expects."""

    def mbarrier_wait(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        """A wait found its phase complete."""

    def mbarrier_blocked(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        """A wait found its phase still open; called at each try."""

    def phase_complete(self, cluster: Cluster, place: Place) -> None: ...
    def async_arrive(self, cluster: Cluster, place: Place, token: Any) -> None:
        """The bytes of a copy, or a tcgen05.commit, arrive on a barrier."""

    # tensor memory
    def tmem_alloc(
        self, cluster: Cluster, split: Split, start: int, columns: int, place: Place | None, group: int
    ) -> None: ...
    def tmem_free(self, cluster: Cluster, split: Split, start: int, columns: int, group: int) -> None: ...
    def tmem_issue(self, cluster: Cluster, split: Split, cells: TmemCells, write: bool) -> None:
        """A tcgen05.ld is issued, or a tcgen05.st if `write`."""

    def tmem_access(self, cluster: Cluster, split: Split, cells: TmemCells, write: bool) -> None:
        """That instruction accesses its cells. split: where it was issued."""

    def tmem_wait(self, cluster: Cluster, split: Split, kind: str) -> None: ...
    def tcgen05_fence(self, cluster: Cluster, split: Split, after: bool) -> None: ...
    def commit_issue(self, cluster: Cluster, split: Split, commit: Commit) -> Any: ...
    def tensor_issue(self, cluster: Cluster, split: Split, work: TensorWork) -> None: ...
    def tensor_execute(self, cluster: Cluster, works: list[TensorWork]) -> None:
        """A tensor core executes this work; several items are MMAs of one thread with a common D."""

    # TMA, bulk copies, st.async
    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> Any: ...
    def copy_read(self, cluster: Cluster, token: Any, copy: BulkCopy) -> None:
        """The copy reads its source in shared memory."""

    def copy_write(self, cluster: Cluster, token: Any, copy: BulkCopy) -> None:
        """The copy writes its targets, or a store its box; a load also reads its global source now."""

    def bulk_commit(self, cluster: Cluster, split: Split) -> None: ...
    def bulk_wait(self, cluster: Cluster, split: Split, allowed: int, reading: bool) -> None: ...

    # cp.async; logs as in `accesses`
    def cp_async_issue(
        self, cluster: Cluster, split: Split, reads: np.ndarray, writes: np.ndarray
    ) -> Any: ...
    def cp_async_copy(self, cluster: Cluster, token: Any) -> None:
        """The copies of one instruction are made."""

    def cp_async_signal(self, cluster: Cluster, split: Split, arrival: CopyArrival) -> None:
        """The arrivals are issued; each arrives when the copies of its lane are done."""

    def cp_async_arrive(
        self, cluster: Cluster, split: Split, place: Place, tokens: list[Any], arrival: CopyArrival
    ) -> None:
        """One lane arrives; `tokens` are those of its copies."""

    def cp_async_wait(self, cluster: Cluster, split: Split, token: Any) -> None:
        """A wait of the split's lanes covers these copies, which are done."""

    # wgmma; each warp of a warpgroup issues its share
    def wgmma_fence(self, cluster: Cluster, split: Split) -> None: ...
    def wgmma_issue(self, cluster: Cluster, split: Split, columns: int, depth: int) -> Any:
        """A warp's share of a product of 64 rows with this many columns and this depth K."""

    def wgmma_read(self, cluster: Cluster, token: Any, span: SharedSpan) -> None:
        """The tensor core reads this span for a warp's share."""

    def wgmma_product(
        self, cluster: Cluster, split: Split, operands: tuple[Operand, ...], into: tuple, fresh: bool
    ) -> None:
        """All four warps have issued a product; into: what D is. fresh: D is overwritten, or held zeros."""

    def wgmma_wait(self, cluster: Cluster, split: Split, token: Any) -> None:
        """A wait of the split covers this share, which is complete."""


def observer_of(bus: Any, kind: type[Kind]) -> Kind | None:
    """The observer of this kind on a bus; None when it runs without."""
    return next((one for one in bus.observers if isinstance(one, kind)), None)
