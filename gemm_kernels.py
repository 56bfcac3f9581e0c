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

            # TODO: All threads copy the tiles together: `with Tx.cta():` and Tx.copy, A to Asmem and
            #       B to Bsmem. Then make the copies visible to the tensor core: every thread has
            #       written, so every thread fences (Tx.ptx.fence.proxy_async("shared::cta")) before
            #       Tx.cuda.cta_sync().

            # TODO: One elected thread of warp 0 issues the MMA and commits it to mma_bar; see
            #       docs/steps/step01.md. tmem[:, :BLK_N] = Asmem @ Bsmem.T overwrites (accum=False). The
            #       MMA runs on its own: everyone waits on mma_bar (phase 0), then
            #       Tx.ptx.tcgen05.fence.after_thread_sync() before TMEM is read.

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            # TODO: Write back, one row of the tile per thread: the warpgroup reads TMEM into Dreg_wg,
            #       then each thread casts Dreg to Dreg_16b and copies it to its row of D.

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

            # TODO: Loop over the K tiles: copy tile k of A and B (columns k*BLK_K ..), fence and sync
            #       as before, one MMA, wait. The first MMA overwrites TMEM, the others accumulate.
            #       mma_bar is used again for each tile: its phase starts at 0 and flips with every
            #       wait. After the loop, fence before TMEM is read.

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            # TODO: Write back, as in step 1.

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
            # TODO: One CTA for each 128x128 tile of D: bx counts the tiles down the rows, by along
            #       the columns.
            bx, by = Tx.cta_id([1, 1], parent="kernel")
            wg_id = Tx.warpgroup_id([1], parent="cta")
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")
            # TODO: m_st, n_st: the first row and column of this CTA's tile of D. Tx.meta_var keeps
            #       them usable in slices.

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

            # TODO: The K loop of step 2, on rows m_st .. of A and rows n_st .. of B.

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            # TODO: Write back, into this CTA's tile of D.

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
    # TODO: TILE_BYTES: what TMA brings for one K tile, A and B together.

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

            # TODO: Write `@Tx.inline def tma_load(k)`: two Tx.copy_async (A, B) with dispatch="tma",
            #       cta_group=1 and mbar=tma_bar.ptr_to([0]), then arrive.expect_tx with the bytes
            #       that they bring. It runs in one thread.

            # TODO: Write `@Tx.inline def mma(accum)`: one Tx.gemm_async and its commit to mma_bar.

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

            # TODO: One elected thread of warp 0 runs the K loop alone: load, wait on tma_bar, fence,
            #       MMA, wait on mma_bar, flip the phase (both barriers complete once per tile). The
            #       other threads wait at a Tx.cuda.cta_sync() after the loop; then fence before TMEM
            #       is read.

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            # TODO: Write back in three moves: the warpgroup reads TMEM into Dreg_wg; each thread
            #       casts its row and copies it to its row of Dsmem; then the fence that lets TMA see
            #       what the threads wrote (the barrier is below).
            Tx.ptx.tcgen05.fence.before_thread_sync()
            Tx.cuda.cta_sync()  # Dsmem is complete, and nobody reads TMEM any more
            if warp_id == 0:
                # TODO: One elected thread stores Dsmem to this tile of D by TMA, commits the group,
                #       and waits for it: nobody else would notice that the store is still reading
                #       Dsmem when the kernel ends.
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

            # TODO: Write tma_load(k, stage): as in step 4, into stage `stage` of Asmem and Bsmem, on
            #       tma_bar.ptr_to([stage]).

            # TODO: Write mma(stage, accum): as in step 4, on one stage.

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

            # TODO: One elected thread: first load PRE_NUM stages ahead (Tx.unroll). Then for each
            #       tile: wait for its stage, fence, MMA, wait for the MMA, load tile k + PIPE_DEPTH
            #       (if there is one) into the stage that it freed, go to the next stage. tma_bar's
            #       phase flips when the stage wraps to 0, mma_bar's with every tile. After the loop:
            #       sync with the other threads, and fence before TMEM is read.

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            # TODO: TMEM to Dsmem, as in step 4.
            Tx.ptx.tcgen05.fence.before_thread_sync()
            Tx.cuda.cta_sync()  # Dsmem is complete, and nobody reads TMEM any more
            if warp_id == 0:
                # TODO: The TMA store, as in step 4.
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

            # TODO: Make a ClusterPersistentScheduler2D("ts", num_m_tiles=, num_n_tiles=,
            #       l2_group_size=, num_clusters=), init it with bx, and take m_st and n_st from its
            #       m_idx and n_idx (Tx.meta_var).

            # TODO: tma_load(k, stage), as in step 5.

            # TODO: mma(stage, accum), as in step 5.

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

            # TODO: stage, phase_tma, phase_mma: they live across tiles. Why must they not start again
            #       with each tile?
            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            # TODO: While the scheduler has a tile for this CTA: the K loop of step 5 (its first loads
            #       go on from the present stage); write-back as in step 5, before_thread_sync included; a
            #       barrier before Dsmem is written again; next_tile().

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

            # TODO: The tile scheduler, m_st and n_st, as in step 6.

            # TODO: Four PipelineState: tma_phase and mma_phase with PIPE_DEPTH stages, ld_phase
            #       and wb_phase with one (ld: the MMA warp's, for TMEM; wb: the write-back's). Who may go
            #       ahead is the producer (is_producer=True); who has to wait first is the consumer.

            # TODO: tma_load(k, stage): the copies report to tma2mma; tma2mma.arrive(stage, bytes)
            #       announces them.

            # TODO: mma(stage, accum): the MMA, then mma2tma.arrive(stage, ...): the commit that hands
            #       the stage back.

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

            # TODO: WG1. Warp 3, one elected thread: for each tile and K tile, wait until the stage is
            #       free (mma2tma), tma_load, next stage. Warp 0, one elected thread: for each tile,
            #       wait until TMEM is free (ld2mma); for each K tile wait for its data (tma2mma),
            #       fence, mma, next stage; after the last one arrive on mma2ld. Both walk through the
            #       same tiles: while tile_scheduler.valid(): .. tile_scheduler.next_tile().
            # TODO: WG0 writes back. For each tile: wait for the product (mma2ld), fence, read TMEM in
            #       chunks of EPI_N columns and cast into Dreg_16b; all 128 threads arrive on ld2mma
            #       once TMEM is read (tcgen05.fence.before_thread_sync first). Then chunk by chunk:
            #       registers to Dsmem, proxy fence, Tx.cuda.warpgroup_sync(1), TMA store by one
            #       thread, warpgroup_sync(1) again before Dsmem is written again. No cta_sync here:
            #       the other warps do not come along.

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
    # TODO: Four stages; the layouts and barriers below follow.
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

            # TODO: The tile scheduler, m_st and n_st, as in step 7.

            # TODO: The pipeline states, as in step 7.

            # TODO: tma_load(k, stage), as in step 7.

            # TODO: mma(stage, accum), as in step 7.

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

            # TODO: WG1: the TMA warp and the MMA warp, as in step 7.
            # TODO: WG0: the write-back, as in step 7.

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
    # TODO: TILE_BYTES: CTA 0 counts what the TMA of both CTAs brings for one K tile.
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

            # TODO: The scheduler now hands 256x256 tiles to clusters: adapt the tile counts,
            #       num_clusters and the index that it starts from. m_st: the first row of A and D of
            #       this CTA; n_st: the first row of B that it loads; d_n_st: the first column of the
            #       cluster's tile of D.

            # TODO: The pipeline states, as in step 8.

            # TODO: tma_load(k, stage): both CTAs' copies report to CTA 0's barrier
            #       (tma2mma.remote_view(0), cta_group=CTA_GROUP), and CTA 0 alone announces the
            #       bytes.

            # TODO: mma(stage, accum): MMA_N columns, cta_group=CTA_GROUP; the commit must reach both
            #       CTAs (cta_mask).

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

            # TODO: WG1: the TMA warp runs in both CTAs, the MMA warp in CTA 0 alone (cbx); its
            #       commits go to both CTAs.
            # TODO: WG0 of both CTAs writes back MMA_N columns. TMEM is free when both CTAs have read
            #       theirs: who waits for that, and so in which CTA do all threads arrive on ld2mma?

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
    # TODO: TILE_BYTES: two blocks of A and one of B, from each CTA.
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

            # TODO: The scheduler, with tiles of 512x256; m_st, n_st, d_n_st as in step 9, each CTA
            #       with NUM_CONSUMER blocks of rows.

            # TODO: The pipeline states, as in step 9.

            # TODO: tma_load(k, stage): as in step 9, with NUM_CONSUMER blocks of A, each to its own
            #       Asmem[stage, c, :, :].

            # TODO: mma(stage, accum): warp_id says which block of A and which MMA_N columns of TMEM
            #       are this consumer's.

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

            # TODO: WG2: warp 3 loads, warps 0 and 1 of CTA 0 multiply. mma2ld and ld2mma have a slot
            #       for each consumer: index them by the consumer, not by the pipeline's stage.
            # TODO: WG0 and WG1 write back, each the TMEM columns and rows of D of its consumer, in
            #       chunks of EPI_N columns with its own part of Dsmem and its own warpgroup_sync id.
            #       The arrival on ld2mma comes after the last TMEM read.

            Tx.cuda.cluster_sync()  # all roles of both CTAs are done
            if wg_id == 0:
                if warp_id == 0:
                    Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=CTA_GROUP)
                    Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=CTA_GROUP)

    return kernel
