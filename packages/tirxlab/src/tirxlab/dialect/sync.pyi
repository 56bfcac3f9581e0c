# For editors: barrier arrays, pipeline state, tile scheduler. Docstrings as in __init__.pyi.
from typing import Any

class _BarrierArray:
    def __init__(self, pool: Any, depth: int, name: str | None = None, leader: Any = None) -> None: ...
    def init(self, count: int) -> None:
        """Expect `count` arrivals per phase on every barrier of the array.

        Lowers to: `mbarrier.init.shared.b64` per barrier, under `thread_rank() == 0`.
        Who: all threads, at top level: thread 0 does it, which never enters `if wg_id == 1:`.
        Then: `Tx.ptx.fence.mbarrier_init()` and `cta_sync` (clusters: `cluster_sync`) before its first use.
        """

    def wait(self, stage: Any, phase: Any) -> None:
        """Block until phase `phase` (0 or 1) of barrier `stage` has completed.

        A fresh barrier is in phase 0: `wait(s, 1)` returns at once, `wait(s, 0)` blocks.
        Lowers to: a loop around `mbarrier.try_wait.parity`.
        Who: every thread that needs what the barrier announces; never a remote view.
        Then: flip the phase before the next wait on the same barrier; before reading TMEM,
        `Tx.ptx.tcgen05.fence.after_thread_sync()`.
        """

    def ptr_to(self, index: list) -> Any:
        """Pointer to one barrier of the array: `bar.ptr_to([stage])`.

        Lowers to: a shared-memory address.
        Who: any thread; for `mbar=` of a TMA load, or `Tx.ptx.mbarrier.*`.
        Then: nothing.
        """

    def remote_view(self, cta_id: Any) -> Any:
        """The same barrier array in CTA `cta_id` of the cluster, to arrive on.

        Lowers to: `mapa` (the address in that CTA's shared memory).
        Who: any thread of a kernel with clusters; a view has no `init` and no `wait`.
        Then: the other CTA must still be running when you arrive: end with `Tx.cuda.cluster_sync()`.
        """

BarrierArray = _BarrierArray  # its name at run time; not of the course

class MBarrier(_BarrierArray):
    """`depth` mbarriers on which threads arrive. Memory: 8 bytes each, from the pool.

    Lowers to: `depth` 64-bit words of shared memory.
    Who: made once, before `pool.commit()`.
    Then: `init(count)` with the number of arriving threads, fence, sync.
    """

    def arrive(self, stage: Any, cta_id: Any = 0, pred: Any = None, count: int | None = None) -> None:
        """Each executing thread arrives once, on the barrier of CTA `cta_id` of the cluster.

        Lowers to: `mapa`, `mbarrier.arrive.shared::cluster.b64`, predicated by `pred`.
        Who: as many threads per phase as `init` said; under an `if` fewer arrive and waiters hang.
        Then: nothing; what the thread did before is visible to whoever waits. After TMEM reads, put
        `Tx.ptx.tcgen05.fence.before_thread_sync()` first.
        """

class TMABar(_BarrierArray):
    """`depth` mbarriers that count bytes which TMA loads deliver.

    Lowers to: `depth` 64-bit words of shared memory.
    Who: made once, before `pool.commit()`.
    Then: `init(1)`: one arrival per phase, from `arrive(stage, bytes)`.
    """

    def arrive(self, stage: Any, bytes: Any = None, cta_id: Any = None, pred: Any = None) -> None:
        """Arrive once and expect `bytes` from TMA in this phase; the phase completes when they have arrived.

        Lowers to: `mbarrier.arrive.expect_tx.shared.b64` (with `mapa` on a remote view).
        Who: the one thread that issued the loads, once per phase, before or after them.
        Then: `bytes` must be exactly what the loads on this barrier bring, those of the peer CTA included.
        """

class TCGen05Bar(_BarrierArray):
    """`depth` mbarriers on which the tensor core arrives when the MMAs committed to it are complete.

    Lowers to: `depth` 64-bit words of shared memory.
    Who: made once, before `pool.commit()`.
    Then: `init(1)`: one arrival per phase and CTA, from the commit.
    """

    def arrive(self, stage: Any, cta_group: int = 1, cta_mask: int = 0, pred: Any = None) -> None:
        """Commit the MMAs that this thread has issued: the barrier gets one arrival when they are complete.

        Lowers to: `tcgen05.commit.cta_group::N`, `.multicast::cluster` when `cta_mask` names several CTAs.
        Who: the thread that issued the MMAs, and it alone.
        Then: whoever waits on it may overwrite the operands; before TMEM reads, `after_thread_sync`.
        """

class PipelineState:
    """Stage and phase of one side (producer or consumer) of a ring of `depth` buffers.

    Lowers to: two int32 registers per thread.
    Who: made by all threads; each thread advances its own copy.
    Then: `init(is_producer=...)` before the first wait.
    """

    stage: Any
    phase: Any
    def __init__(self, name: str, depth: int) -> None: ...
    def init(self, is_producer: bool) -> None:
        """Stage 0; phase 1 for a producer (its first waits pass), 0 for a consumer (its first wait blocks).

        Lowers to: two moves.
        Who: the threads that use the state; once, outside the tile loop.
        Then: one `move_to_next_stage()` per wait, never a second `init`.
        """

    def move_to_next_stage(self) -> None:
        """Next stage; the phase flips when the stage wraps to 0.

        Lowers to: an add, a compare and an xor.
        Who: the thread that waited, once per stage used, in every CTA that waits.
        Then: nothing.
        """

class ClusterPersistentScheduler2D:
    """Which output tiles a cluster computes: `num_clusters` clusters take them in turn, in groups of
    `l2_group_size` rows of tiles that share L2.

    Lowers to: integer arithmetic in each thread.
    Who: made by all threads; roles that run apart each walk the same sequence.
    Then: `init(cluster)`, then `while s.valid(): ... s.next_tile()`.
    """

    m_idx: Any
    n_idx: Any
    def __init__(
        self, prefix: str, num_m_tiles: int, num_n_tiles: int, num_clusters: int, l2_group_size: int = 8
    ) -> None: ...
    def init(self, cluster: Any) -> None:
        """Start with this cluster's first tile.

        Lowers to: integer arithmetic.
        Who: all threads; `bx` without clusters, `bx // CTA_GROUP` with them.
        Then: loop while `valid()`.
        """

    def valid(self) -> Any:
        """True while there is a tile left for this cluster.

        Lowers to: one compare.
        Who: every role, as the condition of its `while`.
        Then: use `m_idx`, `n_idx` (in tiles, not elements).
        """

    def next_tile(self) -> None:
        """Move on by `num_clusters` tiles.

        Lowers to: integer arithmetic.
        Who: every role, at the end of each turn of its loop.
        Then: barrier phases carry on from where they are; do not initialise states again.
        """
