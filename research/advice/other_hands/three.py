"""Hand-in of student three: steps 3 and 6 to 10. Written out at length; roles by one flat warp number."""

# ruff: noqa: SIM102, F841

from tirxlab import (
    ClusterPersistentScheduler2D,
    MBarrier,
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

SM_COUNT = 148
H, F = "float16", "float32"
SIDE = 128  # rows and columns of a tile
DEEP = 64  # columns of A and B per round
BLOCK_BYTES = SIDE * DEEP * 2
ATOM = SwizzleMode.SWIZZLE_128B_ATOM
HALF_ATOM = SwizzleMode.SWIZZLE_64B_ATOM  # for output chunks of 32 columns
TMEM_ALL = TileLayout(S[(128, 512) : (1 @ TLane, 1 @ TCol)])
TMEM_HALF = TileLayout(S[(128, 256) : (1 @ TLane, 1 @ TCol)])
TMEM_TILE = TileLayout(S[(128, 128) : (1 @ TLane, 1 @ TCol)])
ROW64 = TileLayout(S[(128, 64) : (1 @ axis_tid_in_wg, 1)])
ROW32 = TileLayout(S[(128, 32) : (1 @ axis_tid_in_wg, 1)])
ROW16 = TileLayout(S[(128, 16) : (1 @ axis_tid_in_wg, 1)])


def check_sizes(M, N, K, m_unit, n_unit):
    for name, size, unit in (("M", M, m_unit), ("N", N, n_unit), ("K", K, DEEP)):
        if not isinstance(size, int) or size < unit or size % unit != 0:
            raise ValueError(f"{name} must be a positive multiple of {unit}")


def hgemm_v3(M, N, K):
    """Two buffers for A and B: the threads copy the next tile while the tensor core reads the last one."""
    check_sizes(M, N, K, SIDE, SIDE)
    rounds = K // DEEP
    tiles_n = N // SIDE
    in_layout = tma_shared_layout(H, ATOM, (2, SIDE, DEEP))

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), H), B: Tx.Buffer((N, K), H), D: Tx.Buffer((M, N), H)):
        with Tx.kernel():
            tile = Tx.cta_id([(M // SIDE) * tiles_n], parent="kernel")
            group = Tx.warpgroup_id([1], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            row0 = Tx.meta_var(tile // tiles_n * SIDE)
            col0 = Tx.meta_var(tile % tiles_n * SIDE)

            memory = Tx.PoolAllocator()
            a_buf = memory.alloc((2, SIDE, DEEP), H, layout=in_layout)
            b_buf = memory.alloc((2, SIDE, DEEP), H, layout=in_layout)
            buf_free = memory.alloc((2,), "uint64")  # the MMA that read this buffer is complete
            all_done = memory.alloc((1,), "uint64")  # all MMAs are complete
            tmem_at = memory.alloc((1,), "uint32")
            memory.commit()

            if warp == 1:
                if lane == 0:
                    Tx.ptx.mbarrier.init(buf_free.ptr_to([0]), 1)
                    Tx.ptx.mbarrier.init(buf_free.ptr_to([1]), 1)
                    Tx.ptx.mbarrier.init(all_done.ptr_to([0]), 1)
            if warp == 2:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_at), n_cols=128, cta_group=1)
            # the first round: nothing to wait for
            with Tx.cta():
                Tx.copy(a_buf[0, :, :], A[row0 : row0 + SIDE, 0:DEEP])
                Tx.copy(b_buf[0, :, :], B[col0 : col0 + SIDE, 0:DEEP])
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            result = Tx.decl_buffer((128, 128), F, scope="tmem", allocated_addr=tmem_at[0], layout=TMEM_TILE)
            if warp == 3:
                with Tx.thread(parent="warp")[lane == 0]:
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    Tx.gemm_async(
                        result[:, :],
                        a_buf[0, :, :],
                        b_buf[0, :, :],
                        accum=False,
                        dispatch="tcgen05",
                        cta_group=1,
                    )
                    Tx.ptx.tcgen05.commit(buf_free.ptr_to([0]), cta_group=1)
            # the other rounds
            for k in range(1, rounds):
                which = Tx.meta_var(k % 2)
                if k >= 2:
                    Tx.ptx.mbarrier.try_wait(buf_free.ptr_to([which]), (k // 2 - 1) % 2)
                with Tx.cta():
                    Tx.copy(a_buf[which, :, :], A[row0 : row0 + SIDE, k * DEEP : k * DEEP + DEEP])
                    Tx.copy(b_buf[which, :, :], B[col0 : col0 + SIDE, k * DEEP : k * DEEP + DEEP])
                Tx.ptx.fence.proxy_async("shared::cta")
                Tx.cuda.cta_sync()
                if warp == 3:
                    with Tx.thread(parent="warp")[lane == 0]:
                        Tx.ptx.tcgen05.fence.after_thread_sync()
                        Tx.gemm_async(
                            result[:, :],
                            a_buf[which, :, :],
                            b_buf[which, :, :],
                            accum=True,
                            dispatch="tcgen05",
                            cta_group=1,
                        )
                        Tx.ptx.tcgen05.commit(buf_free.ptr_to([which]), cta_group=1)
            if warp == 3:
                with Tx.thread(parent="warp")[lane == 0]:
                    Tx.ptx.tcgen05.commit(all_done.ptr_to([0]), cta_group=1)
            Tx.ptx.mbarrier.try_wait(all_done.ptr_to([0]), 0)
            Tx.ptx.tcgen05.fence.after_thread_sync()

            wide = Tx.alloc_local((32,), F)
            thin = Tx.alloc_local((32,), H)
            wide_wg = wide.view(128, 32, layout=ROW32)
            for part in Tx.unroll(4):
                col = Tx.meta_var(col0 + part * 32)
                with Tx.warpgroup():
                    Tx.copy(wide_wg[:, :], result[:, part * 32 : part * 32 + 32])
                with Tx.thread():
                    Tx.cast(thin[:], wide[:])
                    Tx.copy(D[row0 + warp * 32 + lane, col : col + 32], thin[:])
            Tx.ptx.tcgen05.fence.before_thread_sync()
            Tx.cuda.cta_sync()
            if warp == 2:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tmem_at[0], n_cols=128, cta_group=1)

    return kernel


def hgemm_v6(M, N, K):
    """A by warp 0, B by warp 3, each with barriers of its own; three output chunks, stores awaited late."""
    check_sizes(M, N, K, SIDE, SIDE)
    rounds = K // DEEP
    tiles_n = N // SIDE
    tiles = M // SIDE * tiles_n
    SLOTS = 3
    in_layout = tma_shared_layout(H, ATOM, (SLOTS, SIDE, DEEP))
    out_layout = tma_shared_layout(H, HALF_ATOM, (3, SIDE, 32))

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), H), B: Tx.Buffer((N, K), H), D: Tx.Buffer((M, N), H)):
        with Tx.kernel():
            cta = Tx.cta_id([SM_COUNT], parent="kernel")
            group = Tx.warpgroup_id([1], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")

            memory = Tx.PoolAllocator()
            b_ring = memory.alloc((SLOTS, SIDE, DEEP), H, layout=in_layout)
            a_ring = memory.alloc((SLOTS, SIDE, DEEP), H, layout=in_layout)
            chunks = memory.alloc((3, SIDE, 32), H, layout=out_layout)
            a_here = memory.alloc((SLOTS,), "uint64")
            b_here = memory.alloc((SLOTS,), "uint64")
            slot_free = memory.alloc((SLOTS,), "uint64")
            product = memory.alloc((1,), "uint64")
            tmem_at = memory.alloc((1,), "uint32")
            memory.commit()

            if warp == 2:
                if lane == 0:
                    for i in Tx.unroll(SLOTS):
                        Tx.ptx.mbarrier.init(a_here.ptr_to([i]), 1)
                        Tx.ptx.mbarrier.init(b_here.ptr_to([i]), 1)
                        Tx.ptx.mbarrier.init(slot_free.ptr_to([i]), 1)
                    Tx.ptx.mbarrier.init(product.ptr_to([0]), 1)
            if warp == 1:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_at), n_cols=128, cta_group=1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            result = Tx.decl_buffer((128, 128), F, scope="tmem", allocated_addr=tmem_at[0], layout=TMEM_TILE)
            wide = Tx.alloc_local((32,), F)
            thin = Tx.alloc_local((32,), H)
            wide_wg = wide.view(128, 32, layout=ROW32)

            tile = cta
            turn = 0  # tiles that this CTA has done
            a_slot = 0
            a_flip = 0
            b_slot = 0
            b_flip = 0
            use_slot = 0
            use_flip = 0
            while tile < tiles:
                row0 = Tx.meta_var(tile // tiles_n * SIDE)
                col0 = Tx.meta_var(tile % tiles_n * SIDE)
                if warp == 0:
                    with Tx.thread(parent="warp")[lane == 0]:
                        for k in range(rounds):
                            Tx.ptx.mbarrier.try_wait(slot_free.ptr_to([a_slot]), a_flip ^ 1)
                            Tx.ptx.mbarrier.arrive.expect_tx(a_here.ptr_to([a_slot]), BLOCK_BYTES)
                            Tx.copy_async(
                                a_ring[a_slot, :, :],
                                A[row0 : row0 + SIDE, k * DEEP : k * DEEP + DEEP],
                                dispatch="tma",
                                cta_group=1,
                                mbar=a_here.ptr_to([a_slot]),
                            )
                            a_slot = a_slot + 1
                            if a_slot == SLOTS:
                                a_slot = 0
                                a_flip = a_flip ^ 1
                if warp == 3:
                    with Tx.thread(parent="warp")[lane == 0]:
                        for k in range(rounds):
                            Tx.ptx.mbarrier.try_wait(slot_free.ptr_to([b_slot]), b_flip ^ 1)
                            Tx.ptx.mbarrier.arrive.expect_tx(b_here.ptr_to([b_slot]), BLOCK_BYTES)
                            Tx.copy_async(
                                b_ring[b_slot, :, :],
                                B[col0 : col0 + SIDE, k * DEEP : k * DEEP + DEEP],
                                dispatch="tma",
                                cta_group=1,
                                mbar=b_here.ptr_to([b_slot]),
                            )
                            b_slot = b_slot + 1
                            if b_slot == SLOTS:
                                b_slot = 0
                                b_flip = b_flip ^ 1
                if warp == 1:
                    with Tx.thread(parent="warp")[lane == 0]:
                        # first round: overwrites
                        Tx.ptx.mbarrier.try_wait(a_here.ptr_to([use_slot]), use_flip)
                        Tx.ptx.mbarrier.try_wait(b_here.ptr_to([use_slot]), use_flip)
                        Tx.ptx.tcgen05.fence.after_thread_sync()
                        Tx.gemm_async(
                            result[:, :],
                            a_ring[use_slot, :, :],
                            b_ring[use_slot, :, :],
                            accum=False,
                            dispatch="tcgen05",
                            cta_group=1,
                        )
                        Tx.ptx.tcgen05.commit(slot_free.ptr_to([use_slot]), cta_group=1)
                        use_slot = use_slot + 1
                        if use_slot == SLOTS:
                            use_slot = 0
                            use_flip = use_flip ^ 1
                        # the others add
                        for _ in range(1, rounds):
                            Tx.ptx.mbarrier.try_wait(b_here.ptr_to([use_slot]), use_flip)
                            Tx.ptx.mbarrier.try_wait(a_here.ptr_to([use_slot]), use_flip)
                            Tx.ptx.tcgen05.fence.after_thread_sync()
                            Tx.gemm_async(
                                result[:, :],
                                a_ring[use_slot, :, :],
                                b_ring[use_slot, :, :],
                                accum=True,
                                dispatch="tcgen05",
                                cta_group=1,
                            )
                            Tx.ptx.tcgen05.commit(slot_free.ptr_to([use_slot]), cta_group=1)
                            use_slot = use_slot + 1
                            if use_slot == SLOTS:
                                use_slot = 0
                                use_flip = use_flip ^ 1
                        Tx.ptx.tcgen05.commit(product.ptr_to([0]), cta_group=1)

                Tx.ptx.mbarrier.try_wait(product.ptr_to([0]), turn % 2)
                Tx.ptx.tcgen05.fence.after_thread_sync()
                for part in Tx.unroll(4):
                    place = Tx.meta_var((turn * 4 + part) % 3)
                    col = Tx.meta_var(col0 + part * 32)
                    with Tx.warpgroup():
                        Tx.copy(wide_wg[:, :], result[:, part * 32 : part * 32 + 32])
                    if warp == 2:
                        with Tx.thread(parent="warp")[lane == 0]:
                            Tx.ptx.cp_async.bulk.wait_group(2)  # the store before last but one has read
                    Tx.cuda.cta_sync()
                    with Tx.thread():
                        Tx.cast(thin[:], wide[:])
                        Tx.copy(chunks[place, warp * 32 + lane, :], thin[:])
                    Tx.ptx.fence.proxy_async("shared::cta")
                    Tx.ptx.tcgen05.fence.before_thread_sync()
                    Tx.cuda.cta_sync()
                    if warp == 2:
                        with Tx.thread(parent="warp")[lane == 0]:
                            Tx.copy_async(
                                D[row0 : row0 + SIDE, col : col + 32], chunks[place, :, :], dispatch="tma"
                            )
                            Tx.ptx.cp_async.bulk.commit_group()
                turn = turn + 1
                tile = tile + SM_COUNT

            if warp == 2:
                with Tx.thread(parent="warp")[lane == 0]:
                    Tx.ptx.cp_async.bulk.wait_group(0)
            Tx.cuda.cta_sync()
            if warp == 1:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tmem_at[0], n_cols=128, cta_group=1)

    return kernel


def hgemm_v7(M, N, K):
    """Warps 0 to 3 write back, 5 multiplies, 6 loads. One accumulator, no wait for the first tile."""
    check_sizes(M, N, K, SIDE, SIDE)
    rounds = K // DEEP
    SLOTS = 3
    in_layout = tma_shared_layout(H, ATOM, (SLOTS, SIDE, DEEP))
    out_layout = tma_shared_layout(H, HALF_ATOM, (2, SIDE, 32))

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), H), B: Tx.Buffer((N, K), H), D: Tx.Buffer((M, N), H)):
        with Tx.kernel():
            cta = Tx.cta_id([SM_COUNT], parent="kernel")
            group = Tx.warpgroup_id([2], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            role = Tx.meta_var(group * 4 + warp)

            memory = Tx.PoolAllocator()
            chunks = memory.alloc((2, SIDE, 32), H, layout=out_layout)
            a_ring = memory.alloc((SLOTS, SIDE, DEEP), H, layout=in_layout)
            b_ring = memory.alloc((SLOTS, SIDE, DEEP), H, layout=in_layout)
            filled = memory.alloc((SLOTS,), "uint64")
            used = memory.alloc((SLOTS,), "uint64")
            product = memory.alloc((1,), "uint64")
            taken = MBarrier(memory, 1, "taken")  # the product has been read
            tmem_at = memory.alloc((1,), "uint32")
            memory.commit()

            plan = ClusterPersistentScheduler2D(
                "plan",
                num_m_tiles=M // SIDE,
                num_n_tiles=N // SIDE,
                l2_group_size=2,
                num_clusters=SM_COUNT,
            )
            plan.init(cta)
            row0 = Tx.meta_var(plan.m_idx * SIDE)
            col0 = Tx.meta_var(plan.n_idx * SIDE)

            taken.init(128)
            if role == 7:
                if lane == 0:
                    for i in Tx.unroll(SLOTS):
                        Tx.ptx.mbarrier.init(filled.ptr_to([i]), 1)
                        Tx.ptx.mbarrier.init(used.ptr_to([i]), 1)
                    Tx.ptx.mbarrier.init(product.ptr_to([0]), 1)
            if role == 4:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_at), n_cols=256, cta_group=1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            result = Tx.decl_buffer((128, 256), F, scope="tmem", allocated_addr=tmem_at[0], layout=TMEM_HALF)

            if role == 6:
                fill_slot = 0
                fill_flip = 1
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    while plan.valid():
                        for k in range(rounds):
                            Tx.ptx.mbarrier.try_wait(used.ptr_to([fill_slot]), fill_flip)
                            Tx.copy_async(
                                a_ring[fill_slot, :, :],
                                A[row0 : row0 + SIDE, k * DEEP : k * DEEP + DEEP],
                                dispatch="tma",
                                cta_group=1,
                                mbar=filled.ptr_to([fill_slot]),
                            )
                            Tx.copy_async(
                                b_ring[fill_slot, :, :],
                                B[col0 : col0 + SIDE, k * DEEP : k * DEEP + DEEP],
                                dispatch="tma",
                                cta_group=1,
                                mbar=filled.ptr_to([fill_slot]),
                            )
                            Tx.ptx.mbarrier.arrive.expect_tx(filled.ptr_to([fill_slot]), 2 * BLOCK_BYTES)
                            fill_slot = (fill_slot + 1) % SLOTS
                            if fill_slot == 0:
                                fill_flip = fill_flip ^ 1
                        plan.next_tile()
            if role == 5:
                use_slot = 0
                use_flip = 0
                turn = 0
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    while plan.valid():
                        if turn > 0:
                            taken.wait(0, (turn - 1) % 2)
                        # first round
                        Tx.ptx.mbarrier.try_wait(filled.ptr_to([use_slot]), use_flip)
                        Tx.ptx.tcgen05.fence.after_thread_sync()
                        Tx.gemm_async(
                            result[:, 128:256],
                            a_ring[use_slot, :, :],
                            b_ring[use_slot, :, :],
                            accum=False,
                            dispatch="tcgen05",
                            cta_group=1,
                        )
                        Tx.ptx.tcgen05.commit(used.ptr_to([use_slot]), cta_group=1)
                        use_slot = (use_slot + 1) % SLOTS
                        if use_slot == 0:
                            use_flip = use_flip ^ 1
                        # other rounds
                        for _ in range(rounds - 1):
                            Tx.ptx.mbarrier.try_wait(filled.ptr_to([use_slot]), use_flip)
                            Tx.ptx.tcgen05.fence.after_thread_sync()
                            Tx.gemm_async(
                                result[:, 128:256],
                                a_ring[use_slot, :, :],
                                b_ring[use_slot, :, :],
                                accum=True,
                                dispatch="tcgen05",
                                cta_group=1,
                            )
                            Tx.ptx.tcgen05.commit(used.ptr_to([use_slot]), cta_group=1)
                            use_slot = (use_slot + 1) % SLOTS
                            if use_slot == 0:
                                use_flip = use_flip ^ 1
                        Tx.ptx.tcgen05.commit(product.ptr_to([0]), cta_group=1)
                        turn = turn + 1
                        plan.next_tile()
            if role < 4:
                wide = Tx.alloc_local((32,), F)
                thin = Tx.alloc_local((32,), H)
                wide_wg = wide.view(128, 32, layout=ROW32)
                seen = 0
                while plan.valid():
                    Tx.ptx.mbarrier.try_wait(product.ptr_to([0]), seen)
                    seen = seen ^ 1
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for part in Tx.unroll(4):
                        col = Tx.meta_var(col0 + part * 32)
                        with Tx.warpgroup():
                            Tx.copy(wide_wg[:, :], result[:, 128 + part * 32 : 160 + part * 32])
                        if part == 3:
                            Tx.ptx.tcgen05.fence.before_thread_sync()
                            taken.arrive(0)
                        if role == 3:
                            with Tx.thread(parent="warp")[lane == 31]:
                                Tx.ptx.cp_async.bulk.wait_group(1)
                        Tx.cuda.warpgroup_sync(5)
                        with Tx.thread():
                            Tx.cast(thin[:], wide[:])
                            Tx.copy(chunks[part % 2, role * 32 + lane, :], thin[:])
                        Tx.ptx.fence.proxy_async("shared::cta")
                        Tx.cuda.warpgroup_sync(5)
                        if role == 3:
                            with Tx.thread(parent="warp")[lane == 31]:
                                Tx.copy_async(
                                    D[row0 : row0 + SIDE, col : col + 32],
                                    chunks[part % 2, :, :],
                                    dispatch="tma",
                                )
                                Tx.ptx.cp_async.bulk.commit_group()
                    plan.next_tile()
                if role == 3:
                    with Tx.thread(parent="warp")[lane == 31]:
                        Tx.ptx.cp_async.bulk.wait_group(0)

            Tx.cuda.cta_sync()
            if role == 4:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tmem_at[0], n_cols=256, cta_group=1)

    return kernel


def hgemm_v8(M, N, K):
    """Warps 8 and 9 load every second round each, 10 multiplies; WG0 and WG1 write half of a tile each."""
    check_sizes(M, N, K, SIDE, SIDE)
    rounds = K // DEEP
    tiles_m = M // SIDE
    tiles = tiles_m * (N // SIDE)
    SLOTS = 4
    in_layout = tma_shared_layout(H, ATOM, (SLOTS, SIDE, DEEP))
    out_layout = tma_shared_layout(H, ATOM, (2, SIDE, 64))

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), H), B: Tx.Buffer((N, K), H), D: Tx.Buffer((M, N), H)):
        with Tx.kernel():
            cta = Tx.cta_id([SM_COUNT], parent="kernel")
            group = Tx.warpgroup_id([3], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            role = Tx.meta_var(group * 4 + warp)
            mine = Tx.meta_var((tiles - cta + SM_COUNT - 1) // SM_COUNT)  # tiles of this CTA

            memory = Tx.PoolAllocator()
            tmem_at = memory.alloc((1,), "uint32")
            filled = memory.alloc((SLOTS,), "uint64")
            used = memory.alloc((SLOTS,), "uint64")
            product = memory.alloc((2,), "uint64")
            taken = MBarrier(memory, 2, "taken")
            memory.move_base_to(1024)
            a_ring = memory.alloc((SLOTS, SIDE, DEEP), H, layout=in_layout)
            halves = memory.alloc((2, SIDE, 64), H, layout=out_layout)
            b_ring = memory.alloc((SLOTS, SIDE, DEEP), H, layout=in_layout)
            memory.commit()

            taken.init(256)  # both halves
            if role == 1:
                if lane == 0:
                    for i in Tx.unroll(SLOTS):
                        Tx.ptx.mbarrier.init(filled.ptr_to([i]), 1)
                        Tx.ptx.mbarrier.init(used.ptr_to([i]), 1)
                    for i in Tx.unroll(2):
                        Tx.ptx.mbarrier.init(product.ptr_to([i]), 1)
            if role == 11:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_at), n_cols=256, cta_group=1)
            Tx.ptx.fence.mbarrier_init()
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.cuda.cta_sync()
            result = Tx.decl_buffer((128, 256), F, scope="tmem", allocated_addr=tmem_at[0], layout=TMEM_HALF)

            if role == 8 or role == 9:
                with Tx.thread(parent="warp")[lane == 0]:
                    step = role - 8  # rounds of all tiles, counted through
                    while step < mine * rounds:
                        slot = Tx.meta_var(step % SLOTS)
                        tile = Tx.meta_var(cta + step // rounds * SM_COUNT)
                        row0 = Tx.meta_var(tile % tiles_m * SIDE)
                        col0 = Tx.meta_var(tile // tiles_m * SIDE)
                        k0 = Tx.meta_var(step % rounds * DEEP)
                        if step >= SLOTS:
                            Tx.ptx.mbarrier.try_wait(used.ptr_to([slot]), (step // SLOTS - 1) % 2)
                        Tx.ptx.mbarrier.arrive.expect_tx(filled.ptr_to([slot]), 2 * BLOCK_BYTES)
                        Tx.copy_async(
                            a_ring[slot, :, :],
                            A[row0 : row0 + SIDE, k0 : k0 + DEEP],
                            dispatch="tma",
                            cta_group=1,
                            mbar=filled.ptr_to([slot]),
                        )
                        Tx.copy_async(
                            b_ring[slot, :, :],
                            B[col0 : col0 + SIDE, k0 : k0 + DEEP],
                            dispatch="tma",
                            cta_group=1,
                            mbar=filled.ptr_to([slot]),
                        )
                        step = step + 2
            if role == 10:
                with Tx.thread(parent="warp")[lane == 0]:
                    for turn in range(mine):
                        bank = Tx.meta_var(turn % 2)
                        acc0 = Tx.meta_var(turn % 2 * SIDE)
                        if turn >= 2:
                            taken.wait(bank, (turn // 2 - 1) % 2)
                        for k in range(rounds):
                            now = Tx.meta_var(turn * rounds + k)
                            Tx.ptx.mbarrier.try_wait(filled.ptr_to([now % SLOTS]), now // SLOTS % 2)
                            Tx.ptx.tcgen05.fence.after_thread_sync()
                            Tx.gemm_async(
                                result[:, acc0 : acc0 + SIDE],
                                a_ring[now % SLOTS, :, :],
                                b_ring[now % SLOTS, :, :],
                                accum=(k >= 1),
                                dispatch="tcgen05",
                                cta_group=1,
                            )
                            Tx.ptx.tcgen05.commit(used.ptr_to([now % SLOTS]), cta_group=1)
                        Tx.ptx.tcgen05.commit(product.ptr_to([bank]), cta_group=1)
            if role < 8:
                wide = Tx.alloc_local((16,), F)
                thin = Tx.alloc_local((64,), H)
                wide_wg = wide.view(128, 16, layout=ROW16)
                for turn in range(mine):
                    tile = Tx.meta_var(cta + turn * SM_COUNT)
                    row0 = Tx.meta_var(tile % tiles_m * SIDE)
                    col0 = Tx.meta_var(tile // tiles_m * SIDE + group * 64)
                    Tx.ptx.mbarrier.try_wait(product.ptr_to([turn % 2]), turn // 2 % 2)
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for part in Tx.unroll(4):
                        from_col = Tx.meta_var(turn % 2 * SIDE + group * 64 + part * 16)
                        with Tx.warpgroup():
                            Tx.copy(wide_wg[:, :], result[:, from_col : from_col + 16])
                        with Tx.thread():
                            Tx.cast(thin[part * 16 : part * 16 + 16], wide[:])
                    Tx.ptx.tcgen05.fence.before_thread_sync()
                    taken.arrive(turn % 2)
                    if warp == 2:
                        with Tx.thread(parent="warp")[lane == 0]:
                            Tx.ptx.cp_async.bulk.wait_group(0)  # the store of the tile before
                    Tx.cuda.warpgroup_sync(1 + group)
                    with Tx.thread():
                        Tx.copy(halves[group, warp * 32 + lane, :], thin[:])
                    Tx.ptx.fence.proxy_async("shared::cta")
                    Tx.cuda.warpgroup_sync(1 + group)
                    if warp == 2:
                        with Tx.thread(parent="warp")[lane == 0]:
                            Tx.copy_async(
                                D[row0 : row0 + SIDE, col0 : col0 + 64], halves[group, :, :], dispatch="tma"
                            )
                            Tx.ptx.cp_async.bulk.commit_group()
                if warp == 2:
                    with Tx.thread(parent="warp")[lane == 0]:
                        Tx.ptx.cp_async.bulk.wait_group(0)

            Tx.cuda.cta_sync()
            if role == 11:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tmem_at[0], n_cols=256, cta_group=1)

    return kernel


def hgemm_v9(M, N, K):
    """Pairs: warp 4 loads A, warp 5 loads B, each with barriers of its own in the first CTA; 7 multiplies."""
    check_sizes(M, N, K, 2 * SIDE, 2 * SIDE)
    rounds = K // DEEP
    SLOTS = 5
    in_layout = tma_shared_layout(H, ATOM, (SLOTS, SIDE, DEEP))
    out_layout = tma_shared_layout(H, HALF_ATOM, (3, SIDE, 32))

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), H), B: Tx.Buffer((N, K), H), D: Tx.Buffer((M, N), H)):
        with Tx.kernel():
            who, _ = Tx.cta_id([2, 1], parent="cluster")
            cta = Tx.cta_id([SM_COUNT], parent="kernel")
            group = Tx.warpgroup_id([2], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            role = Tx.meta_var(group * 4 + warp)

            memory = Tx.PoolAllocator()
            a_here = TMABar(memory, SLOTS, "a_here")
            b_here = TMABar(memory, SLOTS, "b_here")
            used = TCGen05Bar(memory, SLOTS, "used")
            product = TCGen05Bar(memory, 1, "product")
            taken = MBarrier(memory, 1, "taken")
            tmem_at = memory.alloc((1,), "uint32")
            memory.move_base_to(1024)
            chunks = memory.alloc((3, SIDE, 32), H, layout=out_layout)
            a_ring = memory.alloc((SLOTS, SIDE, DEEP), H, layout=in_layout)
            b_ring = memory.alloc((SLOTS, SIDE, DEEP), H, layout=in_layout)
            memory.commit()
            a_here_0 = a_here.remote_view(0)
            b_here_0 = b_here.remote_view(0)

            plan = ClusterPersistentScheduler2D(
                "plan",
                num_m_tiles=M // (2 * SIDE),
                num_n_tiles=N // (2 * SIDE),
                l2_group_size=4,
                num_clusters=SM_COUNT // 2,
            )
            plan.init(cta // 2)
            row0 = Tx.meta_var((plan.m_idx * 2 + who) * SIDE)
            b_row0 = Tx.meta_var((plan.n_idx * 2 + who) * SIDE)
            col0 = Tx.meta_var(plan.n_idx * 2 * SIDE)

            a_here.init(1)
            b_here.init(1)
            used.init(1)
            product.init(1)
            taken.init(256)
            if role == 6:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_at), n_cols=256, cta_group=2)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cluster_sync()
            result = Tx.decl_buffer((128, 256), F, scope="tmem", allocated_addr=tmem_at[0], layout=TMEM_HALF)

            a_count = 0
            b_count = 0
            use_slot = 0
            use_flip = 0
            turn = 0
            if role == 4:
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    while plan.valid():
                        for k in range(rounds):
                            used.wait(a_count % SLOTS, (a_count // SLOTS + 1) % 2)
                            if who == 0:
                                a_here_0.arrive(a_count % SLOTS, 2 * BLOCK_BYTES)  # also the peer's
                            Tx.copy_async(
                                a_ring[a_count % SLOTS, :, :],
                                A[row0 : row0 + SIDE, k * DEEP : k * DEEP + DEEP],
                                dispatch="tma",
                                cta_group=2,
                                mbar=a_here_0.ptr_to([a_count % SLOTS]),
                            )
                            a_count = a_count + 1
                        plan.next_tile()
            if role == 5:
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    while plan.valid():
                        for k in range(rounds):
                            used.wait(b_count % SLOTS, (b_count // SLOTS + 1) % 2)
                            if who == 0:
                                b_here_0.arrive(b_count % SLOTS, 2 * BLOCK_BYTES)  # also the peer's
                            Tx.copy_async(
                                b_ring[b_count % SLOTS, :, :],
                                B[b_row0 : b_row0 + SIDE, k * DEEP : k * DEEP + DEEP],
                                dispatch="tma",
                                cta_group=2,
                                mbar=b_here_0.ptr_to([b_count % SLOTS]),
                            )
                            b_count = b_count + 1
                        plan.next_tile()
            if role == 7 and who == 0:
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    while plan.valid():
                        if turn > 0:
                            taken.wait(0, (turn - 1) % 2)
                        # first round
                        a_here.wait(use_slot, use_flip)
                        b_here.wait(use_slot, use_flip)
                        Tx.ptx.tcgen05.fence.after_thread_sync()
                        Tx.gemm_async(
                            result[:, :],
                            a_ring[use_slot, :, :],
                            b_ring[use_slot, :, :],
                            accum=False,
                            dispatch="tcgen05",
                            cta_group=2,
                        )
                        used.arrive(use_slot, cta_group=2, cta_mask=3)
                        use_slot = use_slot + 1
                        if use_slot == SLOTS:
                            use_slot = 0
                            use_flip = use_flip ^ 1
                        # other rounds
                        for _ in range(1, rounds):
                            a_here.wait(use_slot, use_flip)
                            b_here.wait(use_slot, use_flip)
                            Tx.ptx.tcgen05.fence.after_thread_sync()
                            Tx.gemm_async(
                                result[:, :],
                                a_ring[use_slot, :, :],
                                b_ring[use_slot, :, :],
                                accum=True,
                                dispatch="tcgen05",
                                cta_group=2,
                            )
                            used.arrive(use_slot, cta_group=2, cta_mask=3)
                            use_slot = use_slot + 1
                            if use_slot == SLOTS:
                                use_slot = 0
                                use_flip = use_flip ^ 1
                        product.arrive(0, cta_group=2, cta_mask=3)
                        turn = turn + 1
                        plan.next_tile()
            if role < 4:
                wide = Tx.alloc_local((32,), F)
                thin = Tx.alloc_local((32,), H)
                wide_wg = wide.view(128, 32, layout=ROW32)
                place = 0
                while plan.valid():
                    product.wait(0, turn % 2)
                    turn = turn + 1
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for part in Tx.unroll(8):
                        col = Tx.meta_var(col0 + part * 32)
                        with Tx.warpgroup():
                            Tx.copy(wide_wg[:, :], result[:, part * 32 : part * 32 + 32])
                        if part == 7:
                            Tx.ptx.tcgen05.fence.before_thread_sync()
                            taken.arrive(0, cta_id=0)
                        with Tx.thread():
                            Tx.cast(thin[:], wide[:])
                            Tx.copy(chunks[place, warp * 32 + lane, :], thin[:])
                        Tx.ptx.fence.proxy_async("shared::cta")
                        Tx.cuda.warpgroup_sync(2)
                        if warp == 1:
                            with Tx.thread(parent="warp")[lane == 0]:
                                Tx.copy_async(
                                    D[row0 : row0 + SIDE, col : col + 32], chunks[place, :, :], dispatch="tma"
                                )
                                Tx.ptx.cp_async.bulk.commit_group()
                                Tx.ptx.cp_async.bulk.wait_group(2)  # the next place is free
                        Tx.cuda.warpgroup_sync(2)
                        place = (place + 1) % 3
                    plan.next_tile()
                if warp == 1:
                    with Tx.thread(parent="warp")[lane == 0]:
                        Tx.ptx.cp_async.bulk.wait_group(0)

            Tx.cuda.cluster_sync()
            if role == 6:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=2)
                Tx.ptx.tcgen05.dealloc(tmem_at[0], n_cols=256, cta_group=2)

    return kernel


def hgemm_v10(M, N, K):
    """WG1 works (4 loads A, 5 loads B, 6 and 7 multiply), WG0 writes back the upper block, WG2 the lower."""
    check_sizes(M, N, K, 4 * SIDE, 2 * SIDE)
    rounds = K // DEEP
    tiles_m = M // (4 * SIDE)
    tiles = tiles_m * (N // (2 * SIDE))
    PAIRS = SM_COUNT // 2
    SLOTS = 3
    a_layout = tma_shared_layout(H, ATOM, (SLOTS, 2, SIDE, DEEP))
    b_layout = tma_shared_layout(H, ATOM, (SLOTS, SIDE, DEEP))
    out_layout = tma_shared_layout(H, ATOM, (2, SIDE, 64))

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), H), B: Tx.Buffer((N, K), H), D: Tx.Buffer((M, N), H)):
        with Tx.kernel():
            who, _ = Tx.cta_id([2, 1], parent="cluster")
            cta = Tx.cta_id([SM_COUNT], parent="kernel")
            group = Tx.warpgroup_id([3], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            role = Tx.meta_var(group * 4 + warp)

            memory = Tx.PoolAllocator()
            b_ring = memory.alloc((SLOTS, SIDE, DEEP), H, layout=b_layout)
            outs = memory.alloc((2, SIDE, 64), H, layout=out_layout)
            a_ring = memory.alloc((SLOTS, 2, SIDE, DEEP), H, layout=a_layout)
            a_here = TMABar(memory, SLOTS, "a_here")
            b_here = TMABar(memory, SLOTS, "b_here")
            used = TCGen05Bar(memory, SLOTS, "used")
            upper_done = TCGen05Bar(memory, 1, "upper_done")
            lower_done = TCGen05Bar(memory, 1, "lower_done")
            upper_taken = MBarrier(memory, 1, "upper_taken")
            lower_taken = MBarrier(memory, 1, "lower_taken")
            tmem_at = memory.alloc((1,), "uint32")
            memory.commit()
            a_here_0 = a_here.remote_view(0)
            b_here_0 = b_here.remote_view(0)

            a_here.init(2)  # each CTA announces what it loads
            b_here.init(1)  # the first CTA announces for both
            used.init(2)  # one commit of each multiplying warp
            upper_done.init(1)
            lower_done.init(1)
            upper_taken.init(256)
            lower_taken.init(256)
            if role == 0:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_at), n_cols=512, cta_group=2)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cluster_sync()
            result = Tx.decl_buffer((128, 512), F, scope="tmem", allocated_addr=tmem_at[0], layout=TMEM_ALL)

            tile = cta // 2
            turn = 0
            slot = 0
            flip = 0
            if role == 4:
                with Tx.thread(parent="warp")[lane == 0]:
                    while tile < tiles:
                        row0 = Tx.meta_var((tile % tiles_m * 2 + who) * 2 * SIDE)
                        for k in range(rounds):
                            used.wait(slot, flip ^ 1)
                            a_here_0.arrive(slot, 2 * BLOCK_BYTES)
                            Tx.copy_async(
                                a_ring[slot, 0, :, :],
                                A[row0 : row0 + SIDE, k * DEEP : k * DEEP + DEEP],
                                dispatch="tma",
                                cta_group=2,
                                mbar=a_here_0.ptr_to([slot]),
                            )
                            Tx.copy_async(
                                a_ring[slot, 1, :, :],
                                A[row0 + SIDE : row0 + 2 * SIDE, k * DEEP : k * DEEP + DEEP],
                                dispatch="tma",
                                cta_group=2,
                                mbar=a_here_0.ptr_to([slot]),
                            )
                            slot = slot + 1
                            if slot == SLOTS:
                                slot = 0
                                flip = flip ^ 1
                        tile = tile + PAIRS
            if role == 5:
                with Tx.thread(parent="warp")[lane == 0]:
                    while tile < tiles:
                        b_row0 = Tx.meta_var((tile // tiles_m * 2 + who) * SIDE)
                        for k in range(rounds):
                            used.wait(slot, flip ^ 1)
                            if who == 0:
                                b_here_0.arrive(slot, 2 * BLOCK_BYTES)
                            Tx.copy_async(
                                b_ring[slot, :, :],
                                B[b_row0 : b_row0 + SIDE, k * DEEP : k * DEEP + DEEP],
                                dispatch="tma",
                                cta_group=2,
                                mbar=b_here_0.ptr_to([slot]),
                            )
                            slot = slot + 1
                            if slot == SLOTS:
                                slot = 0
                                flip = flip ^ 1
                        tile = tile + PAIRS
            if role == 6 and who == 0:
                with Tx.thread(parent="warp")[lane == 0]:
                    while tile < tiles:
                        upper_taken.wait(0, (turn + 1) % 2)
                        for k in range(rounds):
                            a_here.wait(slot, flip)
                            b_here.wait(slot, flip)
                            Tx.ptx.tcgen05.fence.after_thread_sync()
                            Tx.gemm_async(
                                result[:, 0:256],
                                a_ring[slot, 0, :, :],
                                b_ring[slot, :, :],
                                accum=(k > 0),
                                dispatch="tcgen05",
                                cta_group=2,
                            )
                            used.arrive(slot, cta_group=2, cta_mask=3)
                            slot = slot + 1
                            if slot == SLOTS:
                                slot = 0
                                flip = flip ^ 1
                        upper_done.arrive(0, cta_group=2, cta_mask=3)
                        turn = turn + 1
                        tile = tile + PAIRS
            if role == 7 and who == 0:
                with Tx.thread(parent="warp")[lane == 0]:
                    while tile < tiles:
                        lower_taken.wait(0, (turn + 1) % 2)
                        for k in range(rounds):
                            a_here.wait(slot, flip)
                            b_here.wait(slot, flip)
                            Tx.ptx.tcgen05.fence.after_thread_sync()
                            Tx.gemm_async(
                                result[:, 256:512],
                                a_ring[slot, 1, :, :],
                                b_ring[slot, :, :],
                                accum=(k > 0),
                                dispatch="tcgen05",
                                cta_group=2,
                            )
                            used.arrive(slot, cta_group=2, cta_mask=3)
                            slot = slot + 1
                            if slot == SLOTS:
                                slot = 0
                                flip = flip ^ 1
                        lower_done.arrive(0, cta_group=2, cta_mask=3)
                        turn = turn + 1
                        tile = tile + PAIRS
            if group == 0:
                wide = Tx.alloc_local((32,), F)
                thin = Tx.alloc_local((32,), H)
                wide_wg = wide.view(128, 32, layout=ROW32)
                while tile < tiles:
                    upper_done.wait(0, turn % 2)
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for part in Tx.unroll(4):
                        out_row = Tx.meta_var((tile % tiles_m * 2 + who) * 2 * SIDE)
                        out_col = Tx.meta_var(tile // tiles_m * 2 * SIDE + part * 64)
                        if warp == 3:
                            with Tx.thread(parent="warp")[lane == 0]:
                                Tx.ptx.cp_async.bulk.wait_group(0)
                        Tx.cuda.warpgroup_sync(1)
                        for strip in Tx.unroll(2):
                            from_col = Tx.meta_var(part * 64 + strip * 32)
                            with Tx.warpgroup():
                                Tx.copy(wide_wg[:, :], result[:, from_col : from_col + 32])
                            with Tx.thread():
                                Tx.cast(thin[:], wide[:])
                                Tx.copy(outs[0, warp * 32 + lane, strip * 32 : strip * 32 + 32], thin[:])
                        Tx.ptx.fence.proxy_async("shared::cta")
                        Tx.cuda.warpgroup_sync(1)
                        if warp == 3:
                            with Tx.thread(parent="warp")[lane == 0]:
                                Tx.copy_async(
                                    D[out_row : out_row + SIDE, out_col : out_col + 64],
                                    outs[0, :, :],
                                    dispatch="tma",
                                )
                                Tx.ptx.cp_async.bulk.commit_group()
                    Tx.ptx.tcgen05.fence.before_thread_sync()
                    upper_taken.arrive(0, cta_id=0)
                    turn = turn + 1
                    tile = tile + PAIRS
                if warp == 3:
                    with Tx.thread(parent="warp")[lane == 0]:
                        Tx.ptx.cp_async.bulk.wait_group(0)
            if group == 2:
                wide2 = Tx.alloc_local((64,), F)
                thin2 = Tx.alloc_local((64,), H)
                wide2_wg = wide2.view(128, 64, layout=ROW64)
                while tile < tiles:
                    lower_done.wait(0, turn % 2)
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for part in Tx.unroll(4):
                        out_row = Tx.meta_var((tile % tiles_m * 2 + who) * 2 * SIDE + SIDE)
                        out_col = Tx.meta_var(tile // tiles_m * 2 * SIDE + part * 64)
                        with Tx.warpgroup():
                            Tx.copy(wide2_wg[:, :], result[:, 256 + part * 64 : 320 + part * 64])
                        if part == 3:
                            Tx.ptx.tcgen05.fence.before_thread_sync()
                            lower_taken.arrive(0, cta_id=0)
                        if warp == 3:
                            with Tx.thread(parent="warp")[lane == 0]:
                                Tx.ptx.cp_async.bulk.wait_group(0)
                        Tx.cuda.warpgroup_sync(2)
                        with Tx.thread():
                            Tx.cast(thin2[:], wide2[:])
                            Tx.copy(outs[1, warp * 32 + lane, :], thin2[:])
                        Tx.ptx.fence.proxy_async("shared::cta")
                        Tx.cuda.warpgroup_sync(2)
                        if warp == 3:
                            with Tx.thread(parent="warp")[lane == 0]:
                                Tx.copy_async(
                                    D[out_row : out_row + SIDE, out_col : out_col + 64],
                                    outs[1, :, :],
                                    dispatch="tma",
                                )
                                Tx.ptx.cp_async.bulk.commit_group()
                    turn = turn + 1
                    tile = tile + PAIRS
                if warp == 3:
                    with Tx.thread(parent="warp")[lane == 0]:
                        Tx.ptx.cp_async.bulk.wait_group(0)

            Tx.cuda.cluster_sync()
            if role == 0:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=2)
                Tx.ptx.tcgen05.dealloc(tmem_at[0], n_cols=512, cta_group=2)

    return kernel
