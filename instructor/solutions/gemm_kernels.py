"""Ten GEMM kernels for Blackwell (sm_100a), each one technique beyond the one before.

`hgemm_vN(M, N, K)` builds the kernel of step N: D = A @ B.T with A (M, K), B (N, K), D (M, N), all
float16 and row-major, accumulated in float32. Shapes that do not fit raise ValueError.
"""

# ruff: noqa: SIM102, F841
# (conditions on ids stay nested, as the language asks; every kernel declares all its thread ids)

from tirxlab import (
    ClusterPersistentScheduler2D,
    MBarrier,
    PipelineState,
    S,
    SwizzleMode,
    TCGen05Bar,
    TCol,
    TileLayout,
    TLane,
    TMABar,
    Tx,
    axis_tid_in_wg,
    tma_shared_layout,
)

F16, F32 = "float16", "float32"
F16_BYTES = 2
BLK_M, BLK_N, BLK_K = 128, 128, 64
TMEM_COLS = 512
SM_COUNT = 148  # B200
L2_GROUP_SIZE = 8
SWIZZLE = SwizzleMode.SWIZZLE_128B_ATOM
A_LAYOUT = tma_shared_layout(F16, SWIZZLE, (BLK_M, BLK_K))
B_LAYOUT = tma_shared_layout(F16, SWIZZLE, (BLK_N, BLK_K))
D_LAYOUT = tma_shared_layout(F16, SWIZZLE, (BLK_M, BLK_N))
TMEM_LAYOUT = TileLayout(S[(128, TMEM_COLS) : (1 @ TLane, 1 @ TCol)])
# One row of the tile per thread of the warpgroup, its columns in that thread's registers.
ROW_PER_THREAD = TileLayout(S[(128, BLK_N) : (1 @ axis_tid_in_wg, 1)])


def _check_exact(**sizes: tuple[int, int]):
    """Each keyword is (given, required)."""
    for name, (given, required) in sizes.items():
        if given != required:
            raise ValueError(f"{name} must be {required} (got {given})")


def _check_multiple(**sizes: tuple[int, int]):
    """Each keyword is (given, unit): a positive multiple of unit is required."""
    for name, (given, unit) in sizes.items():
        if not isinstance(given, int) or given <= 0 or given % unit:
            raise ValueError(f"{name} must be a multiple of {unit} (got {given})")


def hgemm_v1(M, N, K):
    """One 128x128x64 tile by one CTA of 128 threads: synchronous copies, one MMA, one row of D per thread."""
    _check_exact(M=(M, BLK_M), N=(N, BLK_N), K=(K, BLK_K))

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), F16), B: Tx.Buffer((N, K), F16), D: Tx.Buffer((M, N), F16)):
        with Tx.kernel():
            bx, by = Tx.cta_id([1, 1], parent="kernel")
            wg_id = Tx.warpgroup_id([1], parent="cta")
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")

            pool = Tx.PoolAllocator()
            tmem_addr = pool.alloc((1,), "uint32")
            mma_bar = pool.alloc((1,), "uint64")  # 1 arrival: the commit after the MMA
            pool.move_base_to(1024)  # swizzled buffers start on 1024 B
            Asmem = pool.alloc((BLK_M, BLK_K), F16, layout=A_LAYOUT)
            Bsmem = pool.alloc((BLK_N, BLK_K), F16, layout=B_LAYOUT)
            pool.commit()

            if warp_id == 0:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_addr), n_cols=TMEM_COLS, cta_group=1)
                if lane_id == 0:
                    Tx.ptx.mbarrier.init(mma_bar.ptr_to([0]), 1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            tmem = Tx.decl_buffer(
                (128, TMEM_COLS), F32, scope="tmem", allocated_addr=tmem_addr[0], layout=TMEM_LAYOUT
            )

            # TODO[begin] All threads copy the tiles together: `with Tx.cta():` and Tx.copy, A to Asmem and
            # | B to Bsmem. Then make the copies visible to the tensor core: every thread has
            # | written, so every thread fences (Tx.ptx.fence.proxy_async("shared::cta")) before
            # | Tx.cuda.cta_sync().
            with Tx.cta():
                Tx.copy(Asmem[:, :], A[:, :])
                Tx.copy(Bsmem[:, :], B[:, :])
            # Each thread makes its stores visible to the tensor core (async proxy) before the barrier.
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.cuda.cta_sync()
            # TODO[end]

            # TODO[begin] One elected thread of warp 0 issues the MMA and commits it to mma_bar; see
            # | docs/steps/step01.md. tmem[:, :BLK_N] = Asmem @ Bsmem.T overwrites (accum=False). The
            # | MMA runs on its own: everyone waits on mma_bar (phase 0), then
            # | Tx.ptx.tcgen05.fence.after_thread_sync() before TMEM is read.
            if warp_id == 0:
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    Tx.gemm_async(
                        tmem[:, :BLK_N],
                        Asmem[:, :],
                        Bsmem[:, :],
                        accum=False,
                        dispatch="tcgen05",
                        cta_group=1,
                    )
                    Tx.ptx.tcgen05.commit(mma_bar.ptr_to([0]), cta_group=1)
            Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0]), 0)  # everyone: the product is in TMEM
            Tx.ptx.tcgen05.fence.after_thread_sync()
            # TODO[end]

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            # TODO[begin] Write back, one row of the tile per thread: the warpgroup reads TMEM into Dreg_wg,
            # | then each thread casts Dreg to Dreg_16b and copies it to its row of D.
            with Tx.warpgroup():
                Tx.copy(Dreg_wg[:, :], tmem[:, :BLK_N])
            with Tx.thread():
                Tx.cast(Dreg_16b[:], Dreg[:])
                Tx.copy(D[warp_id * 32 + lane_id, :], Dreg_16b[:])
            # TODO[end]

            Tx.ptx.tcgen05.fence.before_thread_sync()
            Tx.cuda.cta_sync()  # nobody reads TMEM any more
            if warp_id == 0:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=1)

    return kernel


def hgemm_v2(M, N, K):
    """Step 1 in a loop over K: the MMAs add up in TMEM, and the barrier's phase flips with every wait."""
    _check_exact(M=(M, BLK_M), N=(N, BLK_N))
    _check_multiple(K=(K, BLK_K))
    K_TILES = K // BLK_K

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), F16), B: Tx.Buffer((N, K), F16), D: Tx.Buffer((M, N), F16)):
        with Tx.kernel():
            bx, by = Tx.cta_id([1, 1], parent="kernel")
            wg_id = Tx.warpgroup_id([1], parent="cta")
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")

            pool = Tx.PoolAllocator()
            tmem_addr = pool.alloc((1,), "uint32")
            mma_bar = pool.alloc((1,), "uint64")  # 1 arrival per K tile: the commit after its MMA
            pool.move_base_to(1024)  # swizzled buffers start on 1024 B
            Asmem = pool.alloc((BLK_M, BLK_K), F16, layout=A_LAYOUT)
            Bsmem = pool.alloc((BLK_N, BLK_K), F16, layout=B_LAYOUT)
            pool.commit()

            if warp_id == 0:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_addr), n_cols=TMEM_COLS, cta_group=1)
                if lane_id == 0:
                    Tx.ptx.mbarrier.init(mma_bar.ptr_to([0]), 1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            tmem = Tx.decl_buffer(
                (128, TMEM_COLS), F32, scope="tmem", allocated_addr=tmem_addr[0], layout=TMEM_LAYOUT
            )

            # TODO[begin] Loop over the K tiles: copy tile k of A and B (columns k*BLK_K ..), fence and sync
            # | as before, one MMA, wait. The first MMA overwrites TMEM, the others accumulate.
            # | mma_bar is used again for each tile: its phase starts at 0 and flips with every
            # | wait. After the loop, fence before TMEM is read.
            phase_mma = 0
            for k in range(K_TILES):
                k_st = Tx.meta_var(k * BLK_K)
                with Tx.cta():
                    Tx.copy(Asmem[:, :], A[:, k_st : k_st + BLK_K])
                    Tx.copy(Bsmem[:, :], B[:, k_st : k_st + BLK_K])
                # Each thread makes its stores visible to the tensor core (async proxy) before the barrier.
                Tx.ptx.fence.proxy_async("shared::cta")
                Tx.cuda.cta_sync()

                if warp_id == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        Tx.ptx.tcgen05.fence.after_thread_sync()
                        Tx.gemm_async(
                            tmem[:, :BLK_N],
                            Asmem[:, :],
                            Bsmem[:, :],
                            accum=(k != 0),
                            dispatch="tcgen05",
                            cta_group=1,
                        )
                        Tx.ptx.tcgen05.commit(mma_bar.ptr_to([0]), cta_group=1)
                # Everyone: A and B may be overwritten; after the last tile, the product is in TMEM.
                Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0]), phase_mma)
                phase_mma = phase_mma ^ 1
            Tx.ptx.tcgen05.fence.after_thread_sync()
            # TODO[end]

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            # TODO[begin] Write back, as in step 1.
            with Tx.warpgroup():
                Tx.copy(Dreg_wg[:, :], tmem[:, :BLK_N])
            with Tx.thread():
                Tx.cast(Dreg_16b[:], Dreg[:])
                Tx.copy(D[warp_id * 32 + lane_id, :], Dreg_16b[:])
            # TODO[end]

            Tx.ptx.tcgen05.fence.before_thread_sync()
            Tx.cuda.cta_sync()  # nobody reads TMEM any more
            if warp_id == 0:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=1)

    return kernel


def hgemm_v3(M, N, K):
    """Step 2 on a 2-D grid: CTA (bx, by) computes the 128x128 tile at row bx*128, column by*128."""
    _check_multiple(M=(M, BLK_M), N=(N, BLK_N), K=(K, BLK_K))
    K_TILES = K // BLK_K

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), F16), B: Tx.Buffer((N, K), F16), D: Tx.Buffer((M, N), F16)):
        with Tx.kernel():
            # TODO[begin] One CTA for each 128x128 tile of D: bx counts the tiles down the rows, by along
            # | the columns.
            # > bx, by = Tx.cta_id([1, 1], parent="kernel")
            bx, by = Tx.cta_id([M // BLK_M, N // BLK_N], parent="kernel")
            # TODO[end]
            wg_id = Tx.warpgroup_id([1], parent="cta")
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")
            # TODO[begin] m_st, n_st: the first row and column of this CTA's tile of D. Tx.meta_var keeps
            # | them usable in slices.
            m_st = Tx.meta_var(bx * BLK_M)
            n_st = Tx.meta_var(by * BLK_N)
            # TODO[end]

            pool = Tx.PoolAllocator()
            tmem_addr = pool.alloc((1,), "uint32")
            mma_bar = pool.alloc((1,), "uint64")  # 1 arrival per K tile: the commit after its MMA
            pool.move_base_to(1024)  # swizzled buffers start on 1024 B
            Asmem = pool.alloc((BLK_M, BLK_K), F16, layout=A_LAYOUT)
            Bsmem = pool.alloc((BLK_N, BLK_K), F16, layout=B_LAYOUT)
            pool.commit()

            if warp_id == 0:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_addr), n_cols=TMEM_COLS, cta_group=1)
                if lane_id == 0:
                    Tx.ptx.mbarrier.init(mma_bar.ptr_to([0]), 1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            tmem = Tx.decl_buffer(
                (128, TMEM_COLS), F32, scope="tmem", allocated_addr=tmem_addr[0], layout=TMEM_LAYOUT
            )

            # TODO[begin] The K loop of step 2, on rows m_st .. of A and rows n_st .. of B.
            phase_mma = 0
            for k in range(K_TILES):
                k_st = Tx.meta_var(k * BLK_K)
                with Tx.cta():
                    Tx.copy(Asmem[:, :], A[m_st : m_st + BLK_M, k_st : k_st + BLK_K])
                    Tx.copy(Bsmem[:, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K])
                # Each thread makes its stores visible to the tensor core (async proxy) before the barrier.
                Tx.ptx.fence.proxy_async("shared::cta")
                Tx.cuda.cta_sync()

                if warp_id == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        Tx.ptx.tcgen05.fence.after_thread_sync()
                        Tx.gemm_async(
                            tmem[:, :BLK_N],
                            Asmem[:, :],
                            Bsmem[:, :],
                            accum=(k != 0),
                            dispatch="tcgen05",
                            cta_group=1,
                        )
                        Tx.ptx.tcgen05.commit(mma_bar.ptr_to([0]), cta_group=1)
                # Everyone: A and B may be overwritten; after the last tile, the product is in TMEM.
                Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0]), phase_mma)
                phase_mma = phase_mma ^ 1
            Tx.ptx.tcgen05.fence.after_thread_sync()
            # TODO[end]

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            # TODO[begin] Write back, into this CTA's tile of D.
            with Tx.warpgroup():
                Tx.copy(Dreg_wg[:, :], tmem[:, :BLK_N])
            with Tx.thread():
                Tx.cast(Dreg_16b[:], Dreg[:])
                Tx.copy(D[m_st + warp_id * 32 + lane_id, n_st : n_st + BLK_N], Dreg_16b[:])
            # TODO[end]

            Tx.ptx.tcgen05.fence.before_thread_sync()
            Tx.cuda.cta_sync()  # nobody reads TMEM any more
            if warp_id == 0:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=1)

    return kernel


def hgemm_v4(M, N, K):
    """Step 3 with TMA: one thread loads (the barrier counts bytes) and multiplies; D leaves by TMA too."""
    _check_multiple(M=(M, BLK_M), N=(N, BLK_N), K=(K, BLK_K))
    K_TILES = K // BLK_K
    # TODO[begin] TILE_BYTES: what TMA brings for one K tile, A and B together.
    TILE_BYTES = (BLK_M * BLK_K + BLK_N * BLK_K) * F16_BYTES
    # TODO[end]

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), F16), B: Tx.Buffer((N, K), F16), D: Tx.Buffer((M, N), F16)):
        with Tx.kernel():
            bx, by = Tx.cta_id([M // BLK_M, N // BLK_N], parent="kernel")
            wg_id = Tx.warpgroup_id([1], parent="cta")
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")
            m_st = Tx.meta_var(bx * BLK_M)
            n_st = Tx.meta_var(by * BLK_N)

            pool = Tx.PoolAllocator()
            tmem_addr = pool.alloc((1,), "uint32")
            tma_bar = pool.alloc((1,), "uint64")  # 1 arrival per K tile (expect_tx) and TILE_BYTES by TMA
            mma_bar = pool.alloc((1,), "uint64")  # 1 arrival per K tile: the commit after its MMA
            pool.move_base_to(1024)  # swizzled buffers start on 1024 B
            Asmem = pool.alloc((BLK_M, BLK_K), F16, layout=A_LAYOUT)
            Bsmem = pool.alloc((BLK_N, BLK_K), F16, layout=B_LAYOUT)
            Dsmem = pool.alloc((BLK_M, BLK_N), F16, layout=D_LAYOUT)
            pool.commit()

            # TODO[begin] Write `@Tx.inline def tma_load(k)`: two Tx.copy_async (A, B) with dispatch="tma",
            # | cta_group=1 and mbar=tma_bar.ptr_to([0]), then arrive.expect_tx with the bytes
            # | that they bring. It runs in one thread.
            @Tx.inline
            def tma_load(k):
                k_st = Tx.meta_var(k * BLK_K)
                tma = Tx.meta_var({"dispatch": "tma", "cta_group": 1, "mbar": tma_bar.ptr_to([0])})
                Tx.copy_async(Asmem[:, :], A[m_st : m_st + BLK_M, k_st : k_st + BLK_K], **tma)
                Tx.copy_async(Bsmem[:, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K], **tma)
                Tx.ptx.mbarrier.arrive.expect_tx(tma_bar.ptr_to([0]), TILE_BYTES)

            # TODO[end]

            # TODO[begin] Write `@Tx.inline def mma(accum)`: one Tx.gemm_async and its commit to mma_bar.
            @Tx.inline
            def mma(accum):
                Tx.gemm_async(
                    tmem[:, :BLK_N], Asmem[:, :], Bsmem[:, :], accum=accum, dispatch="tcgen05", cta_group=1
                )
                Tx.ptx.tcgen05.commit(mma_bar.ptr_to([0]), cta_group=1)

            # TODO[end]

            if warp_id == 0:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_addr), n_cols=TMEM_COLS, cta_group=1)
                if lane_id == 0:
                    Tx.ptx.mbarrier.init(tma_bar.ptr_to([0]), 1)
                    Tx.ptx.mbarrier.init(mma_bar.ptr_to([0]), 1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            tmem = Tx.decl_buffer(
                (128, TMEM_COLS), F32, scope="tmem", allocated_addr=tmem_addr[0], layout=TMEM_LAYOUT
            )

            # TODO[begin] One elected thread of warp 0 runs the K loop alone: load, wait on tma_bar, fence,
            # | MMA, wait on mma_bar, flip the phase (both barriers complete once per tile). The
            # | other threads wait at a Tx.cuda.cta_sync() after the loop; then fence before TMEM
            # | is read.
            phase = 0
            if warp_id == 0:
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    for k in range(K_TILES):
                        tma_load(k)
                        Tx.ptx.mbarrier.try_wait(tma_bar.ptr_to([0]), phase)  # A and B are in shared memory
                        Tx.ptx.tcgen05.fence.after_thread_sync()
                        mma(k != 0)
                        Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0]), phase)  # A and B may be overwritten
                        phase = phase ^ 1
            Tx.cuda.cta_sync()  # the product is in TMEM
            Tx.ptx.tcgen05.fence.after_thread_sync()
            # TODO[end]

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            # TODO[begin] Write back in three moves: the warpgroup reads TMEM into Dreg_wg; each thread
            # | casts its row and copies it to its row of Dsmem; then the fence that lets TMA see
            # | what the threads wrote (the barrier is below).
            with Tx.warpgroup():
                Tx.copy(Dreg_wg[:, :], tmem[:, :BLK_N])
            with Tx.thread():
                Tx.cast(Dreg_16b[:], Dreg[:])
                Tx.copy(Dsmem[warp_id * 32 + lane_id, :], Dreg_16b[:])
            # Each thread makes its stores visible to TMA (async proxy) before the barrier.
            Tx.ptx.fence.proxy_async("shared::cta")
            # TODO[end]
            Tx.ptx.tcgen05.fence.before_thread_sync()
            Tx.cuda.cta_sync()  # Dsmem is complete, and nobody reads TMEM any more
            if warp_id == 0:
                # TODO[begin] One elected thread stores Dsmem to this tile of D by TMA, commits the group,
                # | and waits for it: nobody else would notice that the store is still reading
                # | Dsmem when the kernel ends.
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    Tx.copy_async(D[m_st : m_st + BLK_M, n_st : n_st + BLK_N], Dsmem[:, :], dispatch="tma")
                    Tx.ptx.cp_async.bulk.commit_group()
                    Tx.ptx.cp_async.bulk.wait_group(0)
                # TODO[end]
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=1)

    return kernel


def hgemm_v5(M, N, K):
    """Step 4 double-buffered: while the tensor core works on one stage, TMA fills the other."""
    _check_multiple(M=(M, BLK_M), N=(N, BLK_N), K=(K, BLK_K))
    PIPE_DEPTH = 2
    K_TILES = K // BLK_K
    PRE_NUM = min(PIPE_DEPTH, K_TILES)
    TILE_BYTES = (BLK_M * BLK_K + BLK_N * BLK_K) * F16_BYTES
    A_LAYOUT = tma_shared_layout(F16, SWIZZLE, (PIPE_DEPTH, BLK_M, BLK_K))
    B_LAYOUT = tma_shared_layout(F16, SWIZZLE, (PIPE_DEPTH, BLK_N, BLK_K))

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), F16), B: Tx.Buffer((N, K), F16), D: Tx.Buffer((M, N), F16)):
        with Tx.kernel():
            bx, by = Tx.cta_id([M // BLK_M, N // BLK_N], parent="kernel")
            wg_id = Tx.warpgroup_id([1], parent="cta")
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")
            m_st = Tx.meta_var(bx * BLK_M)
            n_st = Tx.meta_var(by * BLK_N)

            pool = Tx.PoolAllocator()
            tmem_addr = pool.alloc((1,), "uint32")
            tma_bar = pool.alloc(
                (PIPE_DEPTH,), "uint64"
            )  # per load: 1 arrival (expect_tx) and TILE_BYTES by TMA
            mma_bar = pool.alloc((1,), "uint64")  # 1 arrival per K tile: the commit after its MMA
            pool.move_base_to(1024)  # swizzled buffers start on 1024 B
            Asmem = pool.alloc((PIPE_DEPTH, BLK_M, BLK_K), F16, layout=A_LAYOUT)
            Bsmem = pool.alloc((PIPE_DEPTH, BLK_N, BLK_K), F16, layout=B_LAYOUT)
            Dsmem = pool.alloc((BLK_M, BLK_N), F16, layout=D_LAYOUT)
            pool.commit()

            # TODO[begin] Write tma_load(k, stage): as in step 4, into stage `stage` of Asmem and Bsmem, on
            # | tma_bar.ptr_to([stage]).
            @Tx.inline
            def tma_load(k, stage):
                k_st = Tx.meta_var(k * BLK_K)
                tma = Tx.meta_var({"dispatch": "tma", "cta_group": 1, "mbar": tma_bar.ptr_to([stage])})
                Tx.copy_async(Asmem[stage, :, :], A[m_st : m_st + BLK_M, k_st : k_st + BLK_K], **tma)
                Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K], **tma)
                Tx.ptx.mbarrier.arrive.expect_tx(tma_bar.ptr_to([stage]), TILE_BYTES)

            # TODO[end]

            # TODO[begin] Write mma(stage, accum): as in step 4, on one stage.
            @Tx.inline
            def mma(stage, accum):
                Tx.gemm_async(
                    tmem[:, :BLK_N],
                    Asmem[stage, :, :],
                    Bsmem[stage, :, :],
                    accum=accum,
                    dispatch="tcgen05",
                    cta_group=1,
                )
                Tx.ptx.tcgen05.commit(mma_bar.ptr_to([0]), cta_group=1)

            # TODO[end]

            if warp_id == 0:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_addr), n_cols=TMEM_COLS, cta_group=1)
                if lane_id == 0:
                    for i in Tx.unroll(PIPE_DEPTH):
                        Tx.ptx.mbarrier.init(tma_bar.ptr_to([i]), 1)
                    Tx.ptx.mbarrier.init(mma_bar.ptr_to([0]), 1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            tmem = Tx.decl_buffer(
                (128, TMEM_COLS), F32, scope="tmem", allocated_addr=tmem_addr[0], layout=TMEM_LAYOUT
            )

            # TODO[begin] One elected thread: first load PRE_NUM stages ahead (Tx.unroll). Then for each
            # | tile: wait for its stage, fence, MMA, wait for the MMA, load tile k + PIPE_DEPTH
            # | (if there is one) into the stage that it freed, go to the next stage. tma_bar's
            # | phase flips when the stage wraps to 0, mma_bar's with every tile. After the loop:
            # | sync with the other threads, and fence before TMEM is read.
            stage = 0
            phase_tma = 0
            phase_mma = 0
            if warp_id == 0:
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    for i in Tx.unroll(PRE_NUM):
                        tma_load(i, i)
                    for k in range(K_TILES):
                        Tx.ptx.mbarrier.try_wait(
                            tma_bar.ptr_to([stage]), phase_tma
                        )  # the stage holds A and B
                        Tx.ptx.tcgen05.fence.after_thread_sync()
                        mma(stage, k != 0)
                        Tx.ptx.mbarrier.try_wait(
                            mma_bar.ptr_to([0]), phase_mma
                        )  # the stage may be overwritten
                        phase_mma = phase_mma ^ 1
                        if k + PIPE_DEPTH < K_TILES:
                            tma_load(k + PIPE_DEPTH, stage)
                        stage = (stage + 1) % PIPE_DEPTH
                        if stage == 0:
                            phase_tma = phase_tma ^ 1
            Tx.cuda.cta_sync()  # the product is in TMEM
            Tx.ptx.tcgen05.fence.after_thread_sync()
            # TODO[end]

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            # TODO[begin] TMEM to Dsmem, as in step 4.
            with Tx.warpgroup():
                Tx.copy(Dreg_wg[:, :], tmem[:, :BLK_N])
            with Tx.thread():
                Tx.cast(Dreg_16b[:], Dreg[:])
                Tx.copy(Dsmem[warp_id * 32 + lane_id, :], Dreg_16b[:])
            # Each thread makes its stores visible to TMA (async proxy) before the barrier.
            Tx.ptx.fence.proxy_async("shared::cta")
            # TODO[end]
            Tx.ptx.tcgen05.fence.before_thread_sync()
            Tx.cuda.cta_sync()  # Dsmem is complete, and nobody reads TMEM any more
            if warp_id == 0:
                # TODO[begin] The TMA store, as in step 4.
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    Tx.copy_async(D[m_st : m_st + BLK_M, n_st : n_st + BLK_N], Dsmem[:, :], dispatch="tma")
                    Tx.ptx.cp_async.bulk.commit_group()
                    Tx.ptx.cp_async.bulk.wait_group(0)
                # TODO[end]
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=1)

    return kernel


def hgemm_v6(M, N, K):
    """Step 5 persistent: 148 CTAs take output tiles in turn, in the L2-friendly order of a tile scheduler."""
    _check_multiple(M=(M, BLK_M), N=(N, BLK_N), K=(K, BLK_K))
    PIPE_DEPTH = 2
    K_TILES = K // BLK_K
    PRE_NUM = min(PIPE_DEPTH, K_TILES)
    TILE_BYTES = (BLK_M * BLK_K + BLK_N * BLK_K) * F16_BYTES
    A_LAYOUT = tma_shared_layout(F16, SWIZZLE, (PIPE_DEPTH, BLK_M, BLK_K))
    B_LAYOUT = tma_shared_layout(F16, SWIZZLE, (PIPE_DEPTH, BLK_N, BLK_K))

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), F16), B: Tx.Buffer((N, K), F16), D: Tx.Buffer((M, N), F16)):
        with Tx.kernel():
            bx = Tx.cta_id([SM_COUNT], parent="kernel")
            wg_id = Tx.warpgroup_id([1], parent="cta")
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")

            pool = Tx.PoolAllocator()
            tmem_addr = pool.alloc((1,), "uint32")
            tma_bar = pool.alloc(
                (PIPE_DEPTH,), "uint64"
            )  # per load: 1 arrival (expect_tx) and TILE_BYTES by TMA
            mma_bar = pool.alloc((1,), "uint64")  # 1 arrival per K tile: the commit after its MMA
            pool.move_base_to(1024)  # swizzled buffers start on 1024 B
            Asmem = pool.alloc((PIPE_DEPTH, BLK_M, BLK_K), F16, layout=A_LAYOUT)
            Bsmem = pool.alloc((PIPE_DEPTH, BLK_N, BLK_K), F16, layout=B_LAYOUT)
            Dsmem = pool.alloc((BLK_M, BLK_N), F16, layout=D_LAYOUT)
            pool.commit()

            # TODO[begin] Make a ClusterPersistentScheduler2D("ts", num_m_tiles=, num_n_tiles=,
            # | l2_group_size=, num_clusters=), init it with bx, and take m_st and n_st from its
            # | m_idx and n_idx (Tx.meta_var).
            tile_scheduler = ClusterPersistentScheduler2D(
                "ts",
                num_m_tiles=M // BLK_M,
                num_n_tiles=N // BLK_N,
                l2_group_size=L2_GROUP_SIZE,
                num_clusters=SM_COUNT,
            )
            tile_scheduler.init(bx)
            m_st = Tx.meta_var(tile_scheduler.m_idx * BLK_M)
            n_st = Tx.meta_var(tile_scheduler.n_idx * BLK_N)
            # TODO[end]

            # TODO[begin] tma_load(k, stage), as in step 5.
            @Tx.inline
            def tma_load(k, stage):
                k_st = Tx.meta_var(k * BLK_K)
                tma = Tx.meta_var({"dispatch": "tma", "cta_group": 1, "mbar": tma_bar.ptr_to([stage])})
                Tx.copy_async(Asmem[stage, :, :], A[m_st : m_st + BLK_M, k_st : k_st + BLK_K], **tma)
                Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K], **tma)
                Tx.ptx.mbarrier.arrive.expect_tx(tma_bar.ptr_to([stage]), TILE_BYTES)

            # TODO[end]

            # TODO[begin] mma(stage, accum), as in step 5.
            @Tx.inline
            def mma(stage, accum):
                Tx.gemm_async(
                    tmem[:, :BLK_N],
                    Asmem[stage, :, :],
                    Bsmem[stage, :, :],
                    accum=accum,
                    dispatch="tcgen05",
                    cta_group=1,
                )
                Tx.ptx.tcgen05.commit(mma_bar.ptr_to([0]), cta_group=1)

            # TODO[end]

            if warp_id == 0:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_addr), n_cols=TMEM_COLS, cta_group=1)
                if lane_id == 0:
                    for i in Tx.unroll(PIPE_DEPTH):
                        Tx.ptx.mbarrier.init(tma_bar.ptr_to([i]), 1)
                    Tx.ptx.mbarrier.init(mma_bar.ptr_to([0]), 1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            tmem = Tx.decl_buffer(
                (128, TMEM_COLS), F32, scope="tmem", allocated_addr=tmem_addr[0], layout=TMEM_LAYOUT
            )

            # TODO[begin] stage, phase_tma, phase_mma: they live across tiles. Why must they not start again
            # | with each tile?
            stage = 0
            phase_tma = 0
            phase_mma = 0
            # TODO[end]
            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            # TODO[begin] While the scheduler has a tile for this CTA: the K loop of step 5 (its first loads
            # | go on from the present stage); write-back as in step 5, before_thread_sync included; a
            # | barrier before Dsmem is written again; next_tile().
            while tile_scheduler.valid():
                if warp_id == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        for i in Tx.unroll(PRE_NUM):
                            tma_load(i, (stage + i) % PIPE_DEPTH)
                        for k in range(K_TILES):
                            Tx.ptx.mbarrier.try_wait(
                                tma_bar.ptr_to([stage]), phase_tma
                            )  # the stage holds A and B
                            Tx.ptx.tcgen05.fence.after_thread_sync()
                            mma(stage, k != 0)
                            Tx.ptx.mbarrier.try_wait(
                                mma_bar.ptr_to([0]), phase_mma
                            )  # the stage may be overwritten
                            phase_mma = phase_mma ^ 1
                            if k + PIPE_DEPTH < K_TILES:
                                tma_load(k + PIPE_DEPTH, stage)
                            stage = (stage + 1) % PIPE_DEPTH
                            if stage == 0:
                                phase_tma = phase_tma ^ 1
                Tx.cuda.cta_sync()  # the product is in TMEM
                Tx.ptx.tcgen05.fence.after_thread_sync()

                with Tx.warpgroup():
                    Tx.copy(Dreg_wg[:, :], tmem[:, :BLK_N])
                with Tx.thread():
                    Tx.cast(Dreg_16b[:], Dreg[:])
                    Tx.copy(Dsmem[warp_id * 32 + lane_id, :], Dreg_16b[:])
                # Each thread makes its stores visible to TMA (async proxy) before the barrier.
                Tx.ptx.fence.proxy_async("shared::cta")
                Tx.ptx.tcgen05.fence.before_thread_sync()
                Tx.cuda.cta_sync()  # Dsmem is complete, and nobody reads TMEM any more
                if warp_id == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        Tx.copy_async(
                            D[m_st : m_st + BLK_M, n_st : n_st + BLK_N], Dsmem[:, :], dispatch="tma"
                        )
                        Tx.ptx.cp_async.bulk.commit_group()
                        Tx.ptx.cp_async.bulk.wait_group(0)
                Tx.cuda.cta_sync()  # Dsmem may be overwritten by the next tile
                tile_scheduler.next_tile()
            # TODO[end]

            if warp_id == 0:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=1)

    return kernel


def hgemm_v7(M, N, K):
    """Step 6 split into roles that run at the same time and meet only at barriers.

    WG1 warp 3 loads by TMA, WG1 warp 0 issues the MMAs, WG0 writes back:
    TMA -tma2mma-> MMA -mma2ld-> write-back, and mma2tma, ld2mma hand the buffers back.
    """
    _check_multiple(M=(M, BLK_M), N=(N, BLK_N), K=(K, BLK_K))
    WG_NUMBER = 2
    PIPE_DEPTH = 2
    EPI_N = 64  # columns of D per TMEM read and per TMA store
    K_TILES = K // BLK_K
    TILE_BYTES = (BLK_M * BLK_K + BLK_N * BLK_K) * F16_BYTES
    A_LAYOUT = tma_shared_layout(F16, SWIZZLE, (PIPE_DEPTH, BLK_M, BLK_K))
    B_LAYOUT = tma_shared_layout(F16, SWIZZLE, (PIPE_DEPTH, BLK_N, BLK_K))
    D_LAYOUT = tma_shared_layout(F16, SWIZZLE, (BLK_M, EPI_N))
    ROW_PER_THREAD = TileLayout(S[(128, EPI_N) : (1 @ axis_tid_in_wg, 1)])

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), F16), B: Tx.Buffer((N, K), F16), D: Tx.Buffer((M, N), F16)):
        with Tx.kernel():
            bx = Tx.cta_id([SM_COUNT], parent="kernel")
            wg_id = Tx.warpgroup_id([WG_NUMBER], parent="cta")
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")

            pool = Tx.PoolAllocator()
            tmem_addr = pool.alloc((1,), "uint32")
            tma2mma = TMABar(pool, PIPE_DEPTH, "tma2mma")  # A and B are in the stage
            mma2tma = TCGen05Bar(pool, PIPE_DEPTH, "mma2tma")  # the stage may be overwritten
            mma2ld = TCGen05Bar(pool, 1, "mma2ld")  # the product is in TMEM
            ld2mma = MBarrier(pool, 1, "ld2mma")  # TMEM may be overwritten
            pool.move_base_to(1024)  # swizzled buffers start on 1024 B
            Asmem = pool.alloc((PIPE_DEPTH, BLK_M, BLK_K), F16, layout=A_LAYOUT)
            Bsmem = pool.alloc((PIPE_DEPTH, BLK_N, BLK_K), F16, layout=B_LAYOUT)
            Dsmem = pool.alloc((BLK_M, EPI_N), F16, layout=D_LAYOUT)
            pool.commit()

            # TODO[begin] The tile scheduler, m_st and n_st, as in step 6.
            tile_scheduler = ClusterPersistentScheduler2D(
                "ts",
                num_m_tiles=M // BLK_M,
                num_n_tiles=N // BLK_N,
                l2_group_size=L2_GROUP_SIZE,
                num_clusters=SM_COUNT,
            )
            tile_scheduler.init(bx)
            m_st = Tx.meta_var(tile_scheduler.m_idx * BLK_M)
            n_st = Tx.meta_var(tile_scheduler.n_idx * BLK_N)
            # TODO[end]

            # TODO[begin] Four PipelineState: tma_phase and mma_phase with PIPE_DEPTH stages, ld_phase
            # | and wb_phase with one (ld: the MMA warp's, for TMEM; wb: the write-back's). Who may go
            # | ahead is the producer (is_producer=True); who has to wait first is the consumer.
            tma_phase = PipelineState("tma", PIPE_DEPTH)
            mma_phase = PipelineState("mma", PIPE_DEPTH)
            ld_phase = PipelineState("ld", 1)
            wb_phase = PipelineState("wb", 1)
            tma_phase.init(is_producer=True)
            mma_phase.init(is_producer=False)
            ld_phase.init(is_producer=True)
            wb_phase.init(is_producer=False)
            # TODO[end]

            # TODO[begin] tma_load(k, stage): the copies report to tma2mma; tma2mma.arrive(stage, bytes)
            # | announces them.
            @Tx.inline
            def tma_load(k, stage):
                k_st = Tx.meta_var(k * BLK_K)
                tma = Tx.meta_var({"dispatch": "tma", "cta_group": 1, "mbar": tma2mma.ptr_to([stage])})
                Tx.copy_async(Asmem[stage, :, :], A[m_st : m_st + BLK_M, k_st : k_st + BLK_K], **tma)
                Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K], **tma)
                tma2mma.arrive(stage, TILE_BYTES)

            # TODO[end]

            # TODO[begin] mma(stage, accum): the MMA, then mma2tma.arrive(stage, ...): the commit that hands
            # | the stage back.
            @Tx.inline
            def mma(stage, accum):
                Tx.gemm_async(
                    tmem[:, :BLK_N],
                    Asmem[stage, :, :],
                    Bsmem[stage, :, :],
                    accum=accum,
                    dispatch="tcgen05",
                    cta_group=1,
                )
                mma2tma.arrive(stage, cta_group=1, cta_mask=1)

            # TODO[end]

            tma2mma.init(1)  # expect_tx by the TMA thread
            mma2tma.init(1)  # commit by the MMA thread
            mma2ld.init(1)  # commit by the MMA thread
            ld2mma.init(128)  # every thread of WG0
            if wg_id == 0:
                if warp_id == 0:
                    Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_addr), n_cols=TMEM_COLS, cta_group=1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            tmem = Tx.decl_buffer(
                (128, TMEM_COLS), F32, scope="tmem", allocated_addr=tmem_addr[0], layout=TMEM_LAYOUT
            )

            # TODO[begin] WG1. Warp 3, one elected thread: for each tile and K tile, wait until the stage is
            # | free (mma2tma), tma_load, next stage. Warp 0, one elected thread: for each tile,
            # | wait until TMEM is free (ld2mma); for each K tile wait for its data (tma2mma),
            # | fence, mma, next stage; after the last one arrive on mma2ld. Both walk through the
            # | same tiles: while tile_scheduler.valid(): .. tile_scheduler.next_tile().
            if wg_id == 1:
                if warp_id == 3:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while tile_scheduler.valid():
                            for k in range(K_TILES):
                                mma2tma.wait(tma_phase.stage, tma_phase.phase)
                                tma_load(k, tma_phase.stage)
                                tma_phase.move_to_next_stage()
                            tile_scheduler.next_tile()
                if warp_id == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while tile_scheduler.valid():
                            ld2mma.wait(0, ld_phase.phase)
                            ld_phase.move_to_next_stage()
                            for k in range(K_TILES):
                                tma2mma.wait(mma_phase.stage, mma_phase.phase)
                                Tx.ptx.tcgen05.fence.after_thread_sync()
                                mma(mma_phase.stage, k != 0)
                                mma_phase.move_to_next_stage()
                            mma2ld.arrive(0, cta_group=1, cta_mask=1)
                            tile_scheduler.next_tile()
            # TODO[end]
            # TODO[begin] WG0 writes back. For each tile: wait for the product (mma2ld), fence, read TMEM in
            # | chunks of EPI_N columns and cast into Dreg_16b; all 128 threads arrive on ld2mma
            # | once TMEM is read (tcgen05.fence.before_thread_sync first). Then chunk by chunk:
            # | registers to Dsmem, proxy fence, Tx.cuda.warpgroup_sync(1), TMA store by one
            # | thread, warpgroup_sync(1) again before Dsmem is written again. No cta_sync here:
            # | the other warps do not come along.
            if wg_id == 0:
                Dreg = Tx.alloc_local((EPI_N,), F32)
                Dreg_16b = Tx.alloc_local((BLK_N,), F16)
                Dreg_wg = Dreg.view(128, EPI_N, layout=ROW_PER_THREAD)
                while tile_scheduler.valid():
                    mma2ld.wait(0, wb_phase.phase)
                    wb_phase.move_to_next_stage()
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for i in Tx.unroll(BLK_N // EPI_N):
                        with Tx.warpgroup():
                            Tx.copy(Dreg_wg[:, :], tmem[:, i * EPI_N : i * EPI_N + EPI_N])
                        with Tx.thread():
                            Tx.cast(Dreg_16b[i * EPI_N : i * EPI_N + EPI_N], Dreg[:])
                    Tx.ptx.tcgen05.fence.before_thread_sync()
                    ld2mma.arrive(0)
                    for i in Tx.unroll(BLK_N // EPI_N):
                        with Tx.thread():
                            Tx.copy(Dsmem[warp_id * 32 + lane_id, :], Dreg_16b[i * EPI_N : i * EPI_N + EPI_N])
                        # Each thread makes its stores visible to TMA (async proxy) before the barrier.
                        Tx.ptx.fence.proxy_async("shared::cta")
                        Tx.cuda.warpgroup_sync(1)  # Dsmem is complete
                        if warp_id == 0:
                            with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                                d_st = Tx.meta_var(n_st + i * EPI_N)
                                Tx.copy_async(
                                    D[m_st : m_st + BLK_M, d_st : d_st + EPI_N], Dsmem[:, :], dispatch="tma"
                                )
                                Tx.ptx.cp_async.bulk.commit_group()
                                Tx.ptx.cp_async.bulk.wait_group(0)
                        Tx.cuda.warpgroup_sync(1)  # Dsmem may be overwritten
                    tile_scheduler.next_tile()
            # TODO[end]

            Tx.cuda.cta_sync()  # all roles are done
            if wg_id == 0:
                if warp_id == 0:
                    Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                    Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=1)

    return kernel


def hgemm_v8(M, N, K):
    """Step 7 with four pipeline stages instead of two: TMA runs up to three K tiles ahead of the MMA."""
    _check_multiple(M=(M, BLK_M), N=(N, BLK_N), K=(K, BLK_K))
    WG_NUMBER = 2
    # TODO[begin] Four stages; the layouts and barriers below follow.
    # > PIPE_DEPTH = 2
    PIPE_DEPTH = 4
    # TODO[end]
    EPI_N = 64  # columns of D per TMEM read and per TMA store
    K_TILES = K // BLK_K
    TILE_BYTES = (BLK_M * BLK_K + BLK_N * BLK_K) * F16_BYTES
    A_LAYOUT = tma_shared_layout(F16, SWIZZLE, (PIPE_DEPTH, BLK_M, BLK_K))
    B_LAYOUT = tma_shared_layout(F16, SWIZZLE, (PIPE_DEPTH, BLK_N, BLK_K))
    D_LAYOUT = tma_shared_layout(F16, SWIZZLE, (BLK_M, EPI_N))
    ROW_PER_THREAD = TileLayout(S[(128, EPI_N) : (1 @ axis_tid_in_wg, 1)])

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), F16), B: Tx.Buffer((N, K), F16), D: Tx.Buffer((M, N), F16)):
        with Tx.kernel():
            bx = Tx.cta_id([SM_COUNT], parent="kernel")
            wg_id = Tx.warpgroup_id([WG_NUMBER], parent="cta")
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")

            pool = Tx.PoolAllocator()
            tmem_addr = pool.alloc((1,), "uint32")
            tma2mma = TMABar(pool, PIPE_DEPTH, "tma2mma")  # A and B are in the stage
            mma2tma = TCGen05Bar(pool, PIPE_DEPTH, "mma2tma")  # the stage may be overwritten
            mma2ld = TCGen05Bar(pool, 1, "mma2ld")  # the product is in TMEM
            ld2mma = MBarrier(pool, 1, "ld2mma")  # TMEM may be overwritten
            pool.move_base_to(1024)  # swizzled buffers start on 1024 B
            Asmem = pool.alloc((PIPE_DEPTH, BLK_M, BLK_K), F16, layout=A_LAYOUT)
            Bsmem = pool.alloc((PIPE_DEPTH, BLK_N, BLK_K), F16, layout=B_LAYOUT)
            Dsmem = pool.alloc((BLK_M, EPI_N), F16, layout=D_LAYOUT)
            pool.commit()

            # TODO[begin] The tile scheduler, m_st and n_st, as in step 7.
            tile_scheduler = ClusterPersistentScheduler2D(
                "ts",
                num_m_tiles=M // BLK_M,
                num_n_tiles=N // BLK_N,
                l2_group_size=L2_GROUP_SIZE,
                num_clusters=SM_COUNT,
            )
            tile_scheduler.init(bx)
            m_st = Tx.meta_var(tile_scheduler.m_idx * BLK_M)
            n_st = Tx.meta_var(tile_scheduler.n_idx * BLK_N)
            # TODO[end]

            # TODO[begin] The pipeline states, as in step 7.
            tma_phase = PipelineState("tma", PIPE_DEPTH)
            mma_phase = PipelineState("mma", PIPE_DEPTH)
            ld_phase = PipelineState("ld", 1)
            wb_phase = PipelineState("wb", 1)
            tma_phase.init(is_producer=True)
            mma_phase.init(is_producer=False)
            ld_phase.init(is_producer=True)
            wb_phase.init(is_producer=False)
            # TODO[end]

            # TODO[begin] tma_load(k, stage), as in step 7.
            @Tx.inline
            def tma_load(k, stage):
                k_st = Tx.meta_var(k * BLK_K)
                tma = Tx.meta_var({"dispatch": "tma", "cta_group": 1, "mbar": tma2mma.ptr_to([stage])})
                Tx.copy_async(Asmem[stage, :, :], A[m_st : m_st + BLK_M, k_st : k_st + BLK_K], **tma)
                Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K], **tma)
                tma2mma.arrive(stage, TILE_BYTES)

            # TODO[end]

            # TODO[begin] mma(stage, accum), as in step 7.
            @Tx.inline
            def mma(stage, accum):
                Tx.gemm_async(
                    tmem[:, :BLK_N],
                    Asmem[stage, :, :],
                    Bsmem[stage, :, :],
                    accum=accum,
                    dispatch="tcgen05",
                    cta_group=1,
                )
                mma2tma.arrive(stage, cta_group=1, cta_mask=1)

            # TODO[end]

            tma2mma.init(1)  # expect_tx by the TMA thread
            mma2tma.init(1)  # commit by the MMA thread
            mma2ld.init(1)  # commit by the MMA thread
            ld2mma.init(128)  # every thread of WG0
            if wg_id == 0:
                if warp_id == 0:
                    Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_addr), n_cols=TMEM_COLS, cta_group=1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            tmem = Tx.decl_buffer(
                (128, TMEM_COLS), F32, scope="tmem", allocated_addr=tmem_addr[0], layout=TMEM_LAYOUT
            )

            # TODO[begin] WG1: the TMA warp and the MMA warp, as in step 7.
            if wg_id == 1:
                if warp_id == 3:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while tile_scheduler.valid():
                            for k in range(K_TILES):
                                mma2tma.wait(tma_phase.stage, tma_phase.phase)
                                tma_load(k, tma_phase.stage)
                                tma_phase.move_to_next_stage()
                            tile_scheduler.next_tile()
                if warp_id == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while tile_scheduler.valid():
                            ld2mma.wait(0, ld_phase.phase)
                            ld_phase.move_to_next_stage()
                            for k in range(K_TILES):
                                tma2mma.wait(mma_phase.stage, mma_phase.phase)
                                Tx.ptx.tcgen05.fence.after_thread_sync()
                                mma(mma_phase.stage, k != 0)
                                mma_phase.move_to_next_stage()
                            mma2ld.arrive(0, cta_group=1, cta_mask=1)
                            tile_scheduler.next_tile()
            # TODO[end]
            # TODO[begin] WG0: the write-back, as in step 7.
            if wg_id == 0:
                Dreg = Tx.alloc_local((EPI_N,), F32)
                Dreg_16b = Tx.alloc_local((BLK_N,), F16)
                Dreg_wg = Dreg.view(128, EPI_N, layout=ROW_PER_THREAD)
                while tile_scheduler.valid():
                    mma2ld.wait(0, wb_phase.phase)
                    wb_phase.move_to_next_stage()
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for i in Tx.unroll(BLK_N // EPI_N):
                        with Tx.warpgroup():
                            Tx.copy(Dreg_wg[:, :], tmem[:, i * EPI_N : i * EPI_N + EPI_N])
                        with Tx.thread():
                            Tx.cast(Dreg_16b[i * EPI_N : i * EPI_N + EPI_N], Dreg[:])
                    Tx.ptx.tcgen05.fence.before_thread_sync()
                    ld2mma.arrive(0)
                    for i in Tx.unroll(BLK_N // EPI_N):
                        with Tx.thread():
                            Tx.copy(Dsmem[warp_id * 32 + lane_id, :], Dreg_16b[i * EPI_N : i * EPI_N + EPI_N])
                        # Each thread makes its stores visible to TMA (async proxy) before the barrier.
                        Tx.ptx.fence.proxy_async("shared::cta")
                        Tx.cuda.warpgroup_sync(1)  # Dsmem is complete
                        if warp_id == 0:
                            with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                                d_st = Tx.meta_var(n_st + i * EPI_N)
                                Tx.copy_async(
                                    D[m_st : m_st + BLK_M, d_st : d_st + EPI_N], Dsmem[:, :], dispatch="tma"
                                )
                                Tx.ptx.cp_async.bulk.commit_group()
                                Tx.ptx.cp_async.bulk.wait_group(0)
                        Tx.cuda.warpgroup_sync(1)  # Dsmem may be overwritten
                    tile_scheduler.next_tile()
            # TODO[end]

            Tx.cuda.cta_sync()  # all roles are done
            if wg_id == 0:
                if warp_id == 0:
                    Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                    Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=1)

    return kernel


def hgemm_v9(M, N, K):
    """Step 8 on clusters of two CTAs: one MMA of cta_group 2 computes 256x256 from both CTAs' shared memory.

    CTA 0 issues all MMAs and counts both CTAs' bytes; each CTA loads its own half of A and B, and
    keeps its own 128 rows of the product in its TMEM.
    """
    CTA_GROUP = 2
    MMA_N = BLK_N * CTA_GROUP
    _check_multiple(M=(M, CTA_GROUP * BLK_M), N=(N, MMA_N), K=(K, BLK_K))
    WG_NUMBER = 2
    PIPE_DEPTH = 4
    EPI_N = 64  # columns of D per TMEM read and per TMA store
    K_TILES = K // BLK_K
    # TODO[begin] TILE_BYTES: CTA 0 counts what the TMA of both CTAs brings for one K tile.
    TILE_BYTES = CTA_GROUP * (BLK_M * BLK_K + BLK_N * BLK_K) * F16_BYTES
    # TODO[end]
    A_LAYOUT = tma_shared_layout(F16, SWIZZLE, (PIPE_DEPTH, BLK_M, BLK_K))
    B_LAYOUT = tma_shared_layout(F16, SWIZZLE, (PIPE_DEPTH, BLK_N, BLK_K))
    D_LAYOUT = tma_shared_layout(F16, SWIZZLE, (BLK_M, EPI_N))
    ROW_PER_THREAD = TileLayout(S[(128, EPI_N) : (1 @ axis_tid_in_wg, 1)])

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), F16), B: Tx.Buffer((N, K), F16), D: Tx.Buffer((M, N), F16)):
        with Tx.kernel():
            cbx, cby = Tx.cta_id([CTA_GROUP, 1], parent="cluster")
            bx = Tx.cta_id([SM_COUNT], parent="kernel")
            wg_id = Tx.warpgroup_id([WG_NUMBER], parent="cta")
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")

            pool = Tx.PoolAllocator()
            tmem_addr = pool.alloc((1,), "uint32")
            tma2mma = TMABar(pool, PIPE_DEPTH, "tma2mma")  # A and B are in the stage
            mma2tma = TCGen05Bar(pool, PIPE_DEPTH, "mma2tma")  # the stage may be overwritten
            mma2ld = TCGen05Bar(pool, 1, "mma2ld")  # the product is in TMEM
            ld2mma = MBarrier(pool, 1, "ld2mma")  # TMEM may be overwritten
            pool.move_base_to(1024)  # swizzled buffers start on 1024 B
            Asmem = pool.alloc((PIPE_DEPTH, BLK_M, BLK_K), F16, layout=A_LAYOUT)
            Bsmem = pool.alloc((PIPE_DEPTH, BLK_N, BLK_K), F16, layout=B_LAYOUT)
            Dsmem = pool.alloc((BLK_M, EPI_N), F16, layout=D_LAYOUT)
            pool.commit()

            # TODO[begin] The scheduler now hands 256x256 tiles to clusters: adapt the tile counts,
            # | num_clusters and the index that it starts from. m_st: the first row of A and D of
            # | this CTA; n_st: the first row of B that it loads; d_n_st: the first column of the
            # | cluster's tile of D.
            tile_scheduler = ClusterPersistentScheduler2D(
                "ts",
                num_m_tiles=M // (CTA_GROUP * BLK_M),
                num_n_tiles=N // MMA_N,
                l2_group_size=L2_GROUP_SIZE,
                num_clusters=SM_COUNT // CTA_GROUP,
            )
            tile_scheduler.init(bx // CTA_GROUP)
            m_st = Tx.meta_var((tile_scheduler.m_idx * CTA_GROUP + cbx) * BLK_M)  # this CTA's rows of A and D
            n_st = Tx.meta_var((tile_scheduler.n_idx * CTA_GROUP + cbx) * BLK_N)  # this CTA's rows of B
            d_n_st = Tx.meta_var(tile_scheduler.n_idx * MMA_N)  # the cluster's columns of D
            # TODO[end]

            # TODO[begin] The pipeline states, as in step 8.
            tma_phase = PipelineState("tma", PIPE_DEPTH)
            mma_phase = PipelineState("mma", PIPE_DEPTH)
            ld_phase = PipelineState("ld", 1)
            wb_phase = PipelineState("wb", 1)
            tma_phase.init(is_producer=True)
            mma_phase.init(is_producer=False)
            ld_phase.init(is_producer=True)
            wb_phase.init(is_producer=False)
            # TODO[end]

            # TODO[begin] tma_load(k, stage): both CTAs' copies report to CTA 0's barrier
            # | (tma2mma.remote_view(0), cta_group=CTA_GROUP), and CTA 0 alone announces the
            # | bytes.
            tma2mma_cta0 = tma2mma.remote_view(0)  # both CTAs' loads report to CTA 0

            @Tx.inline
            def tma_load(k, stage):
                k_st = Tx.meta_var(k * BLK_K)
                tma = Tx.meta_var(
                    {"dispatch": "tma", "cta_group": CTA_GROUP, "mbar": tma2mma_cta0.ptr_to([stage])}
                )
                Tx.copy_async(Asmem[stage, :, :], A[m_st : m_st + BLK_M, k_st : k_st + BLK_K], **tma)
                Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K], **tma)
                if cbx == 0:
                    tma2mma_cta0.arrive(stage, TILE_BYTES)

            # TODO[end]

            # TODO[begin] mma(stage, accum): MMA_N columns, cta_group=CTA_GROUP; the commit must reach both
            # | CTAs (cta_mask).
            @Tx.inline
            def mma(stage, accum):
                Tx.gemm_async(
                    tmem[:, :MMA_N],
                    Asmem[stage, :, :],
                    Bsmem[stage, :, :],
                    accum=accum,
                    dispatch="tcgen05",
                    cta_group=CTA_GROUP,
                )
                mma2tma.arrive(stage, cta_group=CTA_GROUP, cta_mask=3)

            # TODO[end]

            tma2mma.init(1)  # expect_tx by the TMA thread of CTA 0
            mma2tma.init(1)  # commit by the MMA thread of CTA 0, to both CTAs
            mma2ld.init(1)  # commit by the MMA thread of CTA 0, to both CTAs
            ld2mma.init(128 * CTA_GROUP)  # every thread of WG0 of both CTAs
            if wg_id == 0:
                if warp_id == 0:
                    Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_addr), n_cols=TMEM_COLS, cta_group=CTA_GROUP)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cluster_sync()
            tmem = Tx.decl_buffer(
                (128, TMEM_COLS), F32, scope="tmem", allocated_addr=tmem_addr[0], layout=TMEM_LAYOUT
            )

            # TODO[begin] WG1: the TMA warp runs in both CTAs, the MMA warp in CTA 0 alone (cbx); its
            # | commits go to both CTAs.
            if wg_id == 1:
                if warp_id == 3:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while tile_scheduler.valid():
                            for k in range(K_TILES):
                                mma2tma.wait(tma_phase.stage, tma_phase.phase)
                                tma_load(k, tma_phase.stage)
                                tma_phase.move_to_next_stage()
                            tile_scheduler.next_tile()
                if cbx == 0:
                    if warp_id == 0:
                        with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                            while tile_scheduler.valid():
                                ld2mma.wait(0, ld_phase.phase)
                                ld_phase.move_to_next_stage()
                                for k in range(K_TILES):
                                    tma2mma.wait(mma_phase.stage, mma_phase.phase)
                                    Tx.ptx.tcgen05.fence.after_thread_sync()
                                    mma(mma_phase.stage, k != 0)
                                    mma_phase.move_to_next_stage()
                                mma2ld.arrive(0, cta_group=CTA_GROUP, cta_mask=3)
                                tile_scheduler.next_tile()
            # TODO[end]
            # TODO[begin] WG0 of both CTAs writes back MMA_N columns. TMEM is free when both CTAs have read
            # | theirs: who waits for that, and so in which CTA do all threads arrive on ld2mma?
            if wg_id == 0:
                Dreg = Tx.alloc_local((EPI_N,), F32)
                Dreg_16b = Tx.alloc_local((MMA_N,), F16)
                Dreg_wg = Dreg.view(128, EPI_N, layout=ROW_PER_THREAD)
                while tile_scheduler.valid():
                    mma2ld.wait(0, wb_phase.phase)
                    wb_phase.move_to_next_stage()
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for i in Tx.unroll(MMA_N // EPI_N):
                        with Tx.warpgroup():
                            Tx.copy(Dreg_wg[:, :], tmem[:, i * EPI_N : i * EPI_N + EPI_N])
                        with Tx.thread():
                            Tx.cast(Dreg_16b[i * EPI_N : i * EPI_N + EPI_N], Dreg[:])
                    Tx.ptx.tcgen05.fence.before_thread_sync()
                    ld2mma.arrive(0, cta_id=0)
                    for i in Tx.unroll(MMA_N // EPI_N):
                        with Tx.thread():
                            Tx.copy(Dsmem[warp_id * 32 + lane_id, :], Dreg_16b[i * EPI_N : i * EPI_N + EPI_N])
                        # Each thread makes its stores visible to TMA (async proxy) before the barrier.
                        Tx.ptx.fence.proxy_async("shared::cta")
                        Tx.cuda.warpgroup_sync(1)  # Dsmem is complete
                        if warp_id == 0:
                            with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                                d_st = Tx.meta_var(d_n_st + i * EPI_N)
                                Tx.copy_async(
                                    D[m_st : m_st + BLK_M, d_st : d_st + EPI_N], Dsmem[:, :], dispatch="tma"
                                )
                                Tx.ptx.cp_async.bulk.commit_group()
                                Tx.ptx.cp_async.bulk.wait_group(0)
                        Tx.cuda.warpgroup_sync(1)  # Dsmem may be overwritten
                    tile_scheduler.next_tile()
            # TODO[end]

            Tx.cuda.cluster_sync()  # all roles of both CTAs are done
            if wg_id == 0:
                if warp_id == 0:
                    Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=CTA_GROUP)
                    Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=CTA_GROUP)

    return kernel


def hgemm_v10(M, N, K):
    """Step 9 with two MMA warps, each with its own rows of A, TMEM columns and write-back warpgroup: 512x256.

    WG2 warp 3 loads, WG2 warps 0 and 1 multiply, WG0 and WG1 write back their products, one chunk after
    the other: 384 threads have 168 registers each, too few to collect 256 columns first, as step 9 does.
    """
    CTA_GROUP = 2
    MMA_N = BLK_N * CTA_GROUP
    NUM_CONSUMER = 2
    _check_multiple(M=(M, CTA_GROUP * NUM_CONSUMER * BLK_M), N=(N, MMA_N), K=(K, BLK_K))
    WG_NUMBER = 3
    PIPE_DEPTH = 4
    EPI_N = 64  # columns of D per TMEM read and per TMA store
    K_TILES = K // BLK_K
    # TODO[begin] TILE_BYTES: two blocks of A and one of B, from each CTA.
    TILE_BYTES = CTA_GROUP * (NUM_CONSUMER * BLK_M * BLK_K + BLK_N * BLK_K) * F16_BYTES
    # TODO[end]
    A_LAYOUT = tma_shared_layout(F16, SWIZZLE, (PIPE_DEPTH, NUM_CONSUMER, BLK_M, BLK_K))
    B_LAYOUT = tma_shared_layout(F16, SWIZZLE, (PIPE_DEPTH, BLK_N, BLK_K))
    D_LAYOUT = tma_shared_layout(F16, SWIZZLE, (NUM_CONSUMER, BLK_M, EPI_N))
    ROW_PER_THREAD = TileLayout(S[(128, EPI_N) : (1 @ axis_tid_in_wg, 1)])

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), F16), B: Tx.Buffer((N, K), F16), D: Tx.Buffer((M, N), F16)):
        with Tx.kernel():
            cbx, cby = Tx.cta_id([CTA_GROUP, 1], parent="cluster")
            bx = Tx.cta_id([SM_COUNT], parent="kernel")
            wg_id = Tx.warpgroup_id([WG_NUMBER], parent="cta")
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")

            pool = Tx.PoolAllocator()
            tmem_addr = pool.alloc((1,), "uint32")
            tma2mma = TMABar(pool, PIPE_DEPTH, "tma2mma")  # A and B are in the stage
            mma2tma = TCGen05Bar(pool, PIPE_DEPTH, "mma2tma")  # the stage may be overwritten
            mma2ld = TCGen05Bar(pool, NUM_CONSUMER, "mma2ld")  # the consumer's product is in TMEM
            ld2mma = MBarrier(pool, NUM_CONSUMER, "ld2mma")  # the consumer's TMEM may be overwritten
            pool.move_base_to(1024)  # swizzled buffers start on 1024 B
            Asmem = pool.alloc((PIPE_DEPTH, NUM_CONSUMER, BLK_M, BLK_K), F16, layout=A_LAYOUT)
            Bsmem = pool.alloc((PIPE_DEPTH, BLK_N, BLK_K), F16, layout=B_LAYOUT)
            Dsmem = pool.alloc((NUM_CONSUMER, BLK_M, EPI_N), F16, layout=D_LAYOUT)
            pool.commit()

            # TODO[begin] The scheduler, with tiles of 512x256; m_st, n_st, d_n_st as in step 9, each CTA
            # | with NUM_CONSUMER blocks of rows.
            tile_scheduler = ClusterPersistentScheduler2D(
                "ts",
                num_m_tiles=M // (CTA_GROUP * NUM_CONSUMER * BLK_M),
                num_n_tiles=N // MMA_N,
                l2_group_size=L2_GROUP_SIZE,
                num_clusters=SM_COUNT // CTA_GROUP,
            )
            tile_scheduler.init(bx // CTA_GROUP)
            m_st = Tx.meta_var(
                (tile_scheduler.m_idx * CTA_GROUP + cbx) * NUM_CONSUMER * BLK_M
            )  # this CTA's rows of A and D
            n_st = Tx.meta_var((tile_scheduler.n_idx * CTA_GROUP + cbx) * BLK_N)  # this CTA's rows of B
            d_n_st = Tx.meta_var(tile_scheduler.n_idx * MMA_N)  # the cluster's columns of D
            # TODO[end]

            # TODO[begin] The pipeline states, as in step 9.
            tma_phase = PipelineState("tma", PIPE_DEPTH)
            mma_phase = PipelineState("mma", PIPE_DEPTH)
            ld_phase = PipelineState("ld", 1)
            wb_phase = PipelineState("wb", 1)
            tma_phase.init(is_producer=True)
            mma_phase.init(is_producer=False)
            ld_phase.init(is_producer=True)
            wb_phase.init(is_producer=False)
            # TODO[end]

            # TODO[begin] tma_load(k, stage): as in step 9, with NUM_CONSUMER blocks of A, each to its own
            # | Asmem[stage, c, :, :].
            tma2mma_cta0 = tma2mma.remote_view(0)  # both CTAs' loads report to CTA 0

            @Tx.inline
            def tma_load(k, stage):
                k_st = Tx.meta_var(k * BLK_K)
                tma = Tx.meta_var(
                    {"dispatch": "tma", "cta_group": CTA_GROUP, "mbar": tma2mma_cta0.ptr_to([stage])}
                )
                for c in Tx.unroll(NUM_CONSUMER):
                    a_st = Tx.meta_var(m_st + c * BLK_M)
                    Tx.copy_async(Asmem[stage, c, :, :], A[a_st : a_st + BLK_M, k_st : k_st + BLK_K], **tma)
                Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K], **tma)
                if cbx == 0:
                    tma2mma_cta0.arrive(stage, TILE_BYTES)

            # TODO[end]

            # TODO[begin] mma(stage, accum): warp_id says which block of A and which MMA_N columns of TMEM
            # | are this consumer's.
            @Tx.inline
            def mma(stage, accum):
                Tx.gemm_async(
                    tmem[:, warp_id * MMA_N : warp_id * MMA_N + MMA_N],
                    Asmem[stage, warp_id, :, :],
                    Bsmem[stage, :, :],
                    accum=accum,
                    dispatch="tcgen05",
                    cta_group=CTA_GROUP,
                )
                mma2tma.arrive(stage, cta_group=CTA_GROUP, cta_mask=3)

            # TODO[end]

            tma2mma.init(1)  # expect_tx by the TMA thread of CTA 0
            mma2tma.init(NUM_CONSUMER)  # commits by the MMA threads of CTA 0, to both CTAs
            mma2ld.init(1)  # commit by the consumer's MMA thread of CTA 0, to both CTAs
            ld2mma.init(128 * CTA_GROUP)  # every thread of the consumer's write-back WG of both CTAs
            if wg_id == 0:
                if warp_id == 0:
                    Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_addr), n_cols=TMEM_COLS, cta_group=CTA_GROUP)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cluster_sync()
            tmem = Tx.decl_buffer(
                (128, TMEM_COLS), F32, scope="tmem", allocated_addr=tmem_addr[0], layout=TMEM_LAYOUT
            )

            # TODO[begin] WG2: warp 3 loads, warps 0 and 1 of CTA 0 multiply. mma2ld and ld2mma have a slot
            # | for each consumer: index them by the consumer, not by the pipeline's stage.
            if wg_id == NUM_CONSUMER:
                if warp_id == 3:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while tile_scheduler.valid():
                            for k in range(K_TILES):
                                mma2tma.wait(tma_phase.stage, tma_phase.phase)
                                tma_load(k, tma_phase.stage)
                                tma_phase.move_to_next_stage()
                            tile_scheduler.next_tile()
                if cbx == 0:
                    if warp_id < NUM_CONSUMER:
                        with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                            while tile_scheduler.valid():
                                ld2mma.wait(warp_id, ld_phase.phase)
                                ld_phase.move_to_next_stage()
                                for k in range(K_TILES):
                                    tma2mma.wait(mma_phase.stage, mma_phase.phase)
                                    Tx.ptx.tcgen05.fence.after_thread_sync()
                                    mma(mma_phase.stage, k != 0)
                                    mma_phase.move_to_next_stage()
                                mma2ld.arrive(warp_id, cta_group=CTA_GROUP, cta_mask=3)
                                tile_scheduler.next_tile()
            # TODO[end]
            # TODO[begin] WG0 and WG1 write back, each the TMEM columns and rows of D of its consumer, in
            # | chunks of EPI_N columns with its own part of Dsmem and its own warpgroup_sync id.
            # | The arrival on ld2mma comes after the last TMEM read.
            if wg_id < NUM_CONSUMER:
                Dreg = Tx.alloc_local((EPI_N,), F32)
                Dreg_16b = Tx.alloc_local((EPI_N,), F16)
                Dreg_wg = Dreg.view(128, EPI_N, layout=ROW_PER_THREAD)
                while tile_scheduler.valid():
                    mma2ld.wait(wg_id, wb_phase.phase)
                    wb_phase.move_to_next_stage()
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for i in Tx.unroll(MMA_N // EPI_N):
                        t_st = Tx.meta_var(wg_id * MMA_N + i * EPI_N)
                        with Tx.warpgroup():
                            Tx.copy(Dreg_wg[:, :], tmem[:, t_st : t_st + EPI_N])
                        if i == MMA_N // EPI_N - 1:
                            Tx.ptx.tcgen05.fence.before_thread_sync()
                            ld2mma.arrive(wg_id, cta_id=0)
                        with Tx.thread():
                            Tx.cast(Dreg_16b[:], Dreg[:])
                            Tx.copy(Dsmem[wg_id, warp_id * 32 + lane_id, :], Dreg_16b[:])
                        # Each thread makes its stores visible to TMA (async proxy) before the barrier.
                        Tx.ptx.fence.proxy_async("shared::cta")
                        Tx.cuda.warpgroup_sync(1 + wg_id)  # Dsmem is complete
                        if warp_id == 0:
                            with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                                d_m_st = Tx.meta_var(m_st + wg_id * BLK_M)
                                d_st = Tx.meta_var(d_n_st + i * EPI_N)
                                Tx.copy_async(
                                    D[d_m_st : d_m_st + BLK_M, d_st : d_st + EPI_N],
                                    Dsmem[wg_id, :, :],
                                    dispatch="tma",
                                )
                                Tx.ptx.cp_async.bulk.commit_group()
                                Tx.ptx.cp_async.bulk.wait_group(0)
                        Tx.cuda.warpgroup_sync(1 + wg_id)  # Dsmem may be overwritten
                    tile_scheduler.next_tile()
            # TODO[end]

            Tx.cuda.cluster_sync()  # all roles of both CTAs are done
            if wg_id == 0:
                if warp_id == 0:
                    Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=CTA_GROUP)
                    Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=CTA_GROUP)

    return kernel
