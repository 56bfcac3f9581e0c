# For editors: `Tx.ptx` and `Tx.cuda`, the instructions of the course. Docstrings as in __init__.pyi.
# At run time these namespaces hold all of TVM's instructions; those not listed here complete as Any.
from typing import Any

class _ExpectTx:
    def __call__(self, bar: Any, byte_count: Any, *, remote: Any = None, pred: Any = None) -> None:
        """Arrive once and expect `byte_count` bytes from TMA in this phase: `expect_tx(bar.ptr_to([i]), n)`.

        Lowers to: `mbarrier.arrive.expect_tx.shared.b64`.
        Who: one thread per phase (the one that issues the loads), before or after the loads.
        Then: exactly that many bytes must arrive on the barrier in this phase.
        """

class _Arrive:
    expect_tx: _ExpectTx
    def __call__(self, bar: Any, *, remote: Any = None, pred: Any = None, count: Any = None) -> None:
        """One arrival per executing thread: `arrive(bar.ptr_to([i]))`.

        Lowers to: `mbarrier.arrive.shared.b64`, with `mapa` where `remote=` names a CTA.
        Who: as many threads per phase as the init count says.
        Then: nothing.
        """

class _Mbarrier:
    """mbarriers in shared memory, by pointer; the classes TMABar, TCGen05Bar, MBarrier wrap them."""

    arrive: _Arrive
    def init(self, bar: Any, thread_count: int) -> None:
        """Expect `thread_count` arrivals per phase: `init(bar.ptr_to([i]), 1)`. It starts in phase 0.

        Lowers to: `mbarrier.init.shared.b64`.
        Who: one thread, once per barrier.
        Then: `Tx.ptx.fence.mbarrier_init()` by that thread and a `cta_sync` before anyone uses the barrier.
        """

    def try_wait(self, bar: Any, phase: Any) -> None:
        """Block until phase `phase` of the barrier has completed.

        Lowers to: a loop around `mbarrier.try_wait.parity.shared.b64`.
        Who: every thread that needs what the barrier announces.
        Then: flip your phase; before reading TMEM, `Tx.ptx.tcgen05.fence.after_thread_sync()`.
        """

class _Tcgen05Fence:
    """Order between tcgen05 work and the synchronisation of threads."""

    def after_thread_sync(self) -> None:
        """Order this thread's later tcgen05 work after the synchronisation that it has just seen.

        Says nothing about generic writes to shared memory: those need `fence.proxy_async`.
        Lowers to: `tcgen05.fence::after_thread_sync`.
        Who: each thread that then reads TMEM or issues an MMA, after its wait or barrier.
        Then: the read, or the MMA.
        """

    def before_thread_sync(self) -> None:
        """Order this thread's earlier tcgen05 work before the synchronisation that follows.

        Lowers to: `tcgen05.fence::before_thread_sync`.
        Who: each thread that has read TMEM, before the arrive or barrier that announces it.
        Then: the barrier or the arrive.
        """

class _Tcgen05Wait:
    """Waits for this thread's own TMEM loads and stores."""

    def ld(self) -> None:
        """Wait until this thread's TMEM loads are in their registers (`Tx.copy` does it for you).

        Lowers to: `tcgen05.wait::ld.sync.aligned`.
        Who: all 32 lanes of the warp that loaded.
        Then: the registers may be read, and the TMEM columns handed back.
        """

    def st(self) -> None:
        """Wait until this thread's TMEM stores are done (`Tx.copy` does it for you).

        Lowers to: `tcgen05.wait::st.sync.aligned`.
        Who: all 32 lanes of the warp that stored.
        Then: `before_thread_sync` and a barrier, before another warp or the tensor core reads them.
        """

class _Tcgen05:
    """The tensor core of sm_100a and its tensor memory."""

    fence: _Tcgen05Fence
    wait: _Tcgen05Wait
    def alloc(self, dst_ptr: Any, n_cols: int, cta_group: int = 1) -> None:
        """Allocate `n_cols` (32, 64, 128, 256 or 512) TMEM columns; their address is written to `dst_ptr`.

        Lowers to: `tcgen05.alloc.cta_group::N.sync.aligned.shared::cta.b32`.
        Who: all 32 lanes of one warp (with cta_group=2: of one warp in each CTA).
        Then: `cta_sync` before others read the address; `dealloc` by the same warp before the kernel ends.
        """

    def dealloc(self, taddr: Any, n_cols: int, cta_group: int = 1) -> None:
        """Free the columns at `taddr`, as many as were allocated.

        Lowers to: `tcgen05.dealloc.cta_group::N.sync.aligned.b32`.
        Who: all 32 lanes of the warp that allocated.
        Then: nothing may touch those columns; so put `cta_sync` (clusters: `cluster_sync`) before it.
        """

    def relinquish_alloc_permit(self, cta_group: int = 1) -> None:
        """Promise that this CTA allocates no more TMEM, so that the next CTA on the SM may.

        Lowers to: `tcgen05.relinquish_alloc_permit.cta_group::N.sync.aligned`.
        Who: all 32 lanes of the warp that allocated.
        Then: `dealloc`; no further `alloc`.
        """

    def commit(self, bar: Any, cta_group: int = 1, cta_mask: int = 0, *, pred: Any = None) -> None:
        """One arrival on `bar` when all MMAs that this thread has issued are complete.

        Lowers to: `tcgen05.commit.cta_group::N.mbarrier::arrive::one` (`.multicast::cluster` for several).
        Who: the thread that issued the MMAs.
        Then: wait on the barrier before you overwrite the operands or read the result.
        """

class _Fence:
    """Fences between the proxies (paths to memory) of threads and of asynchronous units."""

    def proxy_async(self, space: str = "") -> None:
        """Make this thread's own writes visible to TMA and the tensor core: `proxy_async("shared::cta")`.

        Lowers to: `fence.proxy.async.shared::cta`.
        Who: every thread that wrote, after its writes.
        Then: a barrier, and then the TMA store or the MMA by the elected thread.
        """

    def mbarrier_init(self) -> None:
        """Make barrier initialisations visible to the other threads, the cluster and the asynchronous units.

        Lowers to: `fence.mbarrier_init.release.cluster`.
        Who: the thread that initialised (all threads may).
        Then: `cta_sync`, with clusters `cluster_sync`.
        """

class _Bulk:
    """Completion of TMA stores, by groups."""

    def commit_group(self) -> None:
        """Close a group of the TMA stores that this thread has issued.

        Lowers to: `cp.async.bulk.commit_group`.
        Who: the thread that issued the stores.
        Then: `wait_group(0)` before the source is overwritten or the CTA ends.
        """

    def wait_group(self, n: int = 0, read: bool = True) -> None:
        """Wait until at most `n` groups of this thread's TMA stores still read their source.

        Lowers to: `cp.async.bulk.wait_group.read n`; without `.read` (read=False) until they are written.
        Who: the thread that committed; others learn of it by a barrier.
        Then: the source (Dsmem) may be written again.
        """

class _CpAsync:
    bulk: _Bulk
    def commit_group(self) -> None:
        """Close a group of this thread's `cp.async` copies (Ampere's; not TMA).

        Lowers to: `cp.async.commit_group`.
        Who: each thread that copies.
        Then: `wait_group(n)`.
        """

    def wait_group(self, n: int = 0) -> None:
        """Wait until at most `n` of this thread's `cp.async` groups are pending.

        Lowers to: `cp.async.wait_group n`.
        Who: each thread that copies.
        Then: a barrier, before other threads read what it copied.
        """

    def __call__(self, *args: Any, **options: Any) -> None:
        """Asynchronous copy of 4, 8 or 16 bytes, global to shared, by each thread (Ampere's; not TMA).

        Lowers to: `cp.async.ca` or `.cg.shared.global`.
        Who: each thread for its own bytes.
        Then: `cp_async.commit_group()` and `cp_async.wait_group(n)`.
        """

class Ptx:
    """PTX instructions, one call each; the names follow the PTX ISA.

    Lowers to: the instruction of that name.
    Who: see each; where it says one thread, elect one.
    Then: see each.
    """

    mbarrier: _Mbarrier
    tcgen05: _Tcgen05
    fence: _Fence
    cp_async: _CpAsync
    def elect_sync(self) -> Any:
        """True in one thread of the warp: `with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:`.

        Lowers to: `elect.sync`.
        Who: all 32 lanes of a warp, outside divergent code.
        Then: nothing inside that block may wait for the other lanes (no `cta_sync`).
        """

    def __getattr__(self, name: str) -> Any: ...

class Cuda:
    """What CUDA C++ has as functions: barriers between threads, printf.

    Lowers to: the CUDA function or the PTX behind it.
    Who: see each.
    Then: see each.
    """

    def cta_sync(self) -> None:
        """Barrier of all threads of the CTA; orders their own accesses, not those of TMA or tensor core.

        Lowers to: `__syncthreads()`, `bar.sync 0`.
        Who: every thread of the CTA; never inside an elected thread or one role's branch.
        Then: `tcgen05.fence.after_thread_sync()` where TMEM is read next.
        """

    def warpgroup_sync(self, barrier_id: int) -> None:
        """Barrier of the 128 threads of one warpgroup; `barrier_id` is 1 to 15 (0 is cta_sync's).

        Lowers to: `bar.sync barrier_id, 128`.
        Who: all 128 threads of the warpgroup; another warpgroup needs another number.
        Then: nothing.
        """

    def cluster_sync(self) -> None:
        """Barrier of all threads of all CTAs of the cluster.

        Lowers to: `barrier.cluster.arrive` and `barrier.cluster.wait`.
        Who: every thread of every CTA of the cluster.
        Then: the peer's shared memory is ready (at the start), or no longer needed (at the end).
        """

    def printf(self, fmt: str, *args: Any) -> None:
        """Print from the kernel; the simulator puts CTA, warp and lane before each line.

        Lowers to: `vprintf`.
        Who: each executing thread prints; put it under a condition.
        Then: nothing.
        """

    def __getattr__(self, name: str) -> Any: ...
