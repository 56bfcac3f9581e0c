"""Ten GEMM kernels for Blackwell (sm_100a), each one technique beyond the one before.

`hgemm_vN(M, N, K)` builds the kernel of step N: D = A @ B.T with A (M, K), B (N, K), D (M, N), all
float16 and row-major, accumulated in float32. Shapes that do not fit raise ValueError.
"""

from tirxlab import (
    S,
    SwizzleMode,
    TCol,
    TileLayout,
    TLane,
    Tx,
    axis_tid_in_wg,
    tma_shared_layout,
)

F16, F32 = "float16", "float32"
F16_BYTES = 2
BLK_M, BLK_N, BLK_K = 128, 128, 64
TMEM_COLS = 512
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

            with Tx.cta():
                Tx.copy(Asmem[:, :], A[:, :])
                Tx.copy(Bsmem[:, :], B[:, :])
            # Each thread makes its own stores visible to the tensor core (async proxy) before the barrier.
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.cuda.cta_sync()

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

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            with Tx.warpgroup():
                Tx.copy(Dreg_wg[:, :], tmem[:, :BLK_N])
            with Tx.thread():
                Tx.cast(Dreg_16b[:], Dreg[:])
                Tx.copy(D[warp_id * 32 + lane_id, :], Dreg_16b[:])

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

            phase_mma = 0
            for k in range(K_TILES):
                k_st = Tx.meta_var(k * BLK_K)
                with Tx.cta():
                    Tx.copy(Asmem[:, :], A[:, k_st : k_st + BLK_K])
                    Tx.copy(Bsmem[:, :], B[:, k_st : k_st + BLK_K])
                # Each thread makes its own stores visible to the tensor core (async proxy) before the barrier.
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

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            with Tx.warpgroup():
                Tx.copy(Dreg_wg[:, :], tmem[:, :BLK_N])
            with Tx.thread():
                Tx.cast(Dreg_16b[:], Dreg[:])
                Tx.copy(D[warp_id * 32 + lane_id, :], Dreg_16b[:])

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
            bx, by = Tx.cta_id([M // BLK_M, N // BLK_N], parent="kernel")
            wg_id = Tx.warpgroup_id([1], parent="cta")
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")
            m_st = Tx.meta_var(bx * BLK_M)
            n_st = Tx.meta_var(by * BLK_N)

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

            phase_mma = 0
            for k in range(K_TILES):
                k_st = Tx.meta_var(k * BLK_K)
                with Tx.cta():
                    Tx.copy(Asmem[:, :], A[m_st : m_st + BLK_M, k_st : k_st + BLK_K])
                    Tx.copy(Bsmem[:, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K])
                # Each thread makes its own stores visible to the tensor core (async proxy) before the barrier.
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

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            with Tx.warpgroup():
                Tx.copy(Dreg_wg[:, :], tmem[:, :BLK_N])
            with Tx.thread():
                Tx.cast(Dreg_16b[:], Dreg[:])
                Tx.copy(D[m_st + warp_id * 32 + lane_id, n_st : n_st + BLK_N], Dreg_16b[:])

            Tx.ptx.tcgen05.fence.before_thread_sync()
            Tx.cuda.cta_sync()  # nobody reads TMEM any more
            if warp_id == 0:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=1)

    return kernel


def hgemm_v4(M, N, K):
    """Step 3 with TMA: one thread loads (expect_tx counts the bytes) and multiplies; D leaves by a TMA store."""
    _check_multiple(M=(M, BLK_M), N=(N, BLK_N), K=(K, BLK_K))
    K_TILES = K // BLK_K
    TILE_BYTES = (BLK_M * BLK_K + BLK_N * BLK_K) * F16_BYTES

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

            @Tx.inline
            def tma_load(k):
                k_st = Tx.meta_var(k * BLK_K)
                tma = Tx.meta_var({"dispatch": "tma", "cta_group": 1, "mbar": tma_bar.ptr_to([0])})
                Tx.copy_async(Asmem[:, :], A[m_st : m_st + BLK_M, k_st : k_st + BLK_K], **tma)
                Tx.copy_async(Bsmem[:, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K], **tma)
                Tx.ptx.mbarrier.arrive.expect_tx(tma_bar.ptr_to([0]), TILE_BYTES)

            @Tx.inline
            def mma(accum):
                Tx.gemm_async(
                    tmem[:, :BLK_N], Asmem[:, :], Bsmem[:, :], accum=accum, dispatch="tcgen05", cta_group=1
                )
                Tx.ptx.tcgen05.commit(mma_bar.ptr_to([0]), cta_group=1)

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

            Dreg = Tx.alloc_local((BLK_N,), F32)
            Dreg_16b = Tx.alloc_local((BLK_N,), F16)
            Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)
            with Tx.warpgroup():
                Tx.copy(Dreg_wg[:, :], tmem[:, :BLK_N])
            with Tx.thread():
                Tx.cast(Dreg_16b[:], Dreg[:])
                Tx.copy(Dsmem[warp_id * 32 + lane_id, :], Dreg_16b[:])
            # Each thread makes its own stores visible to TMA (async proxy) before the barrier.
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.tcgen05.fence.before_thread_sync()
            Tx.cuda.cta_sync()  # Dsmem is complete, and nobody reads TMEM any more
            if warp_id == 0:
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    Tx.copy_async(D[m_st : m_st + BLK_M, n_st : n_st + BLK_N], Dsmem[:, :], dispatch="tma")
                    Tx.ptx.cp_async.bulk.commit_group()
                    Tx.ptx.cp_async.bulk.wait_group(0)
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=1)

    return kernel
