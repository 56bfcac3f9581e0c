"""Hand-in of student one: steps 4, 5, 7, 9 and 10. Counters, no phase flags; tiles before barriers."""

# ruff: noqa: SIM102, F841

from tirxlab import (
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

HALF, FULL = "float16", "float32"
TM, TN, TK = 128, 128, 64
SM_COUNT = 148
SW = SwizzleMode.SWIZZLE_128B_ATOM


def smem_tile(*shape):
    return tma_shared_layout(HALF, SW, shape)


def tmem_of(columns):
    return TileLayout(S[(128, columns) : (1 @ TLane, 1 @ TCol)])


def rows_of(columns):
    return TileLayout(S[(128, columns) : (1 @ axis_tid_in_wg, 1)])


def divisible(what, size, unit):
    if not isinstance(size, int) or size <= 0 or size % unit:
        raise ValueError(f"{what}={size} is not a multiple of {unit}")


def hgemm_v4(M, N, K):
    """The next load is issued at the end of a round; C lies over A and B, which nobody needs by then."""
    divisible("M", M, TM)
    divisible("N", N, TN)
    divisible("K", K, TK)
    rounds = K // TK
    part = TN // 2  # columns that are stored at once

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), HALF), B: Tx.Buffer((N, K), HALF), C: Tx.Buffer((M, N), HALF)):
        with Tx.kernel():
            col, row = Tx.cta_id([N // TN, M // TM], parent="kernel")
            group = Tx.warpgroup_id([1], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            r0 = Tx.meta_var(row * TM)
            c0 = Tx.meta_var(col * TN)

            smem = Tx.PoolAllocator()
            sA = smem.alloc((TM, TK), HALF, layout=smem_tile(TM, TK))
            sB = smem.alloc((TN, TK), HALF, layout=smem_tile(TN, TK))
            smem.move_base_to(0)  # over A and B
            sC = smem.alloc((2, TM, part), HALF, layout=smem_tile(2, TM, part))
            loaded = smem.alloc((1,), "uint64")
            eaten = smem.alloc((1,), "uint64")
            finished = smem.alloc((1,), "uint64")
            where = smem.alloc((1,), "uint32")
            smem.commit()

            @Tx.inline
            def fetch(k):
                Tx.ptx.mbarrier.arrive.expect_tx(loaded.ptr_to([0]), 2 * (TM + TN) * TK)
                Tx.copy_async(
                    sA[:, :],
                    A[r0 : r0 + TM, k * TK : k * TK + TK],
                    dispatch="tma",
                    cta_group=1,
                    mbar=loaded.ptr_to([0]),
                )
                Tx.copy_async(
                    sB[:, :],
                    B[c0 : c0 + TN, k * TK : k * TK + TK],
                    dispatch="tma",
                    cta_group=1,
                    mbar=loaded.ptr_to([0]),
                )

            if warp == 3:
                if lane == 0:
                    Tx.ptx.mbarrier.init(loaded.ptr_to([0]), 1)
                    Tx.ptx.mbarrier.init(eaten.ptr_to([0]), 1)
                    Tx.ptx.mbarrier.init(finished.ptr_to([0]), 1)
            if warp == 1:
                Tx.ptx.tcgen05.alloc(Tx.address_of(where), n_cols=128, cta_group=1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            acc = Tx.decl_buffer((128, 128), FULL, scope="tmem", allocated_addr=where[0], layout=tmem_of(128))

            if warp == 2:
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    fetch(0)
                    for k in range(rounds):
                        Tx.ptx.mbarrier.try_wait(loaded.ptr_to([0]), k % 2)
                        Tx.ptx.tcgen05.fence.after_thread_sync()
                        Tx.gemm_async(
                            acc[:, :], sA[:, :], sB[:, :], accum=(k > 0), dispatch="tcgen05", cta_group=1
                        )
                        if k + 1 < rounds:
                            Tx.ptx.tcgen05.commit(eaten.ptr_to([0]), cta_group=1)
                            Tx.ptx.mbarrier.try_wait(eaten.ptr_to([0]), k % 2)
                            fetch(k + 1)
                    Tx.ptx.tcgen05.commit(finished.ptr_to([0]), cta_group=1)

            # all four warps look at the last commit themselves
            Tx.ptx.mbarrier.try_wait(finished.ptr_to([0]), 0)
            Tx.ptx.tcgen05.fence.after_thread_sync()
            sums = Tx.alloc_local((part,), FULL)
            small = Tx.alloc_local((part,), HALF)
            sums_wg = sums.view(128, part, layout=rows_of(part))
            for h in Tx.unroll(2):
                with Tx.warpgroup():
                    Tx.copy(sums_wg[:, :], acc[:, h * part : h * part + part])
                with Tx.thread():
                    Tx.cast(small[:], sums[:])
                    Tx.copy(sC[h, warp * 32 + lane, :], small[:])
            Tx.ptx.tcgen05.fence.before_thread_sync()
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.cuda.cta_sync()
            if warp == 0:
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    for h in Tx.unroll(2):
                        c1 = Tx.meta_var(c0 + h * part)
                        Tx.copy_async(C[r0 : r0 + TM, c1 : c1 + part], sC[h, :, :], dispatch="tma")
                    Tx.ptx.cp_async.bulk.commit_group()
                    Tx.ptx.cp_async.bulk.wait_group(0)
            if warp == 1:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(where[0], n_cols=128, cta_group=1)

    return kernel


def hgemm_v5(M, N, K):
    """One loop: in turn t tile t is loaded and tile t - AHEAD multiplied."""
    divisible("M", M, TM)
    divisible("N", N, TN)
    divisible("K", K, TK)
    rounds = K // TK
    RING = 3
    AHEAD = 2
    piece = 32

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), HALF), B: Tx.Buffer((N, K), HALF), C: Tx.Buffer((M, N), HALF)):
        with Tx.kernel():
            col, row = Tx.cta_id([N // TN, M // TM], parent="kernel")
            group = Tx.warpgroup_id([1], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            r0 = Tx.meta_var(row * TM)
            c0 = Tx.meta_var(col * TN)

            smem = Tx.PoolAllocator()
            sC = smem.alloc((TM, TN), HALF, layout=smem_tile(TM, TN))
            sA = smem.alloc((RING, TM, TK), HALF, layout=smem_tile(RING, TM, TK))
            sB = smem.alloc((RING, TN, TK), HALF, layout=smem_tile(RING, TN, TK))
            loaded = smem.alloc((RING,), "uint64")
            eaten = smem.alloc((RING,), "uint64")
            finished = smem.alloc((1,), "uint64")
            where = smem.alloc((1,), "uint32")
            smem.commit()

            @Tx.inline
            def fetch(k):
                s = Tx.meta_var(k % RING)
                how = Tx.meta_var({"dispatch": "tma", "cta_group": 1, "mbar": loaded.ptr_to([s])})
                Tx.ptx.mbarrier.arrive.expect_tx(loaded.ptr_to([s]), 2 * (TM + TN) * TK)
                Tx.copy_async(sA[s, :, :], A[r0 : r0 + TM, k * TK : k * TK + TK], **how)
                Tx.copy_async(sB[s, :, :], B[c0 : c0 + TN, k * TK : k * TK + TK], **how)

            @Tx.inline
            def multiply(k):
                s = Tx.meta_var(k % RING)
                Tx.ptx.mbarrier.try_wait(loaded.ptr_to([s]), k // RING % 2)
                Tx.ptx.tcgen05.fence.after_thread_sync()
                Tx.gemm_async(
                    acc[:, :], sA[s, :, :], sB[s, :, :], accum=(k > 0), dispatch="tcgen05", cta_group=1
                )
                Tx.ptx.tcgen05.commit(eaten.ptr_to([s]), cta_group=1)

            if warp == 3:
                if lane == 0:
                    for i in Tx.unroll(RING):
                        Tx.ptx.mbarrier.init(loaded.ptr_to([i]), 1)
                        Tx.ptx.mbarrier.init(eaten.ptr_to([i]), 1)
                    Tx.ptx.mbarrier.init(finished.ptr_to([0]), 1)
            if warp == 0:
                Tx.ptx.tcgen05.alloc(Tx.address_of(where), n_cols=128, cta_group=1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            acc = Tx.decl_buffer((128, 128), FULL, scope="tmem", allocated_addr=where[0], layout=tmem_of(128))

            if warp == 3:
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    for t in range(rounds + AHEAD):
                        if t < rounds:
                            if t >= RING:
                                Tx.ptx.mbarrier.try_wait(eaten.ptr_to([t % RING]), (t // RING - 1) % 2)
                            fetch(t)
                        if t >= AHEAD:
                            multiply(t - AHEAD)
                    Tx.ptx.tcgen05.commit(finished.ptr_to([0]), cta_group=1)

            Tx.ptx.mbarrier.try_wait(finished.ptr_to([0]), 0)
            Tx.ptx.tcgen05.fence.after_thread_sync()
            sums = Tx.alloc_local((piece,), FULL)
            small = Tx.alloc_local((piece,), HALF)
            sums_wg = sums.view(128, piece, layout=rows_of(piece))
            for p in Tx.unroll(TN // piece):
                with Tx.warpgroup():
                    Tx.copy(sums_wg[:, :], acc[:, p * piece : p * piece + piece])
                with Tx.thread():
                    Tx.cast(small[:], sums[:])
                    Tx.copy(sC[warp * 32 + lane, p * piece : p * piece + piece], small[:])
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.tcgen05.fence.before_thread_sync()
            Tx.cuda.cta_sync()
            if warp == 0:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(where[0], n_cols=128, cta_group=1)
            if warp == 1:
                with Tx.thread(parent="warp")[lane == 0]:
                    Tx.copy_async(C[r0 : r0 + TM, c0 : c0 + TN], sC[:, :], dispatch="tma")
                    Tx.ptx.cp_async.bulk.commit_group()
                    Tx.ptx.cp_async.bulk.wait_group(0)

    return kernel


def hgemm_v7(M, N, K):
    """Roles, with two accumulators in TMEM: tile n uses n % 2. WG0 loads and multiplies, WG1 writes back."""
    divisible("M", M, TM)
    divisible("N", N, TN)
    divisible("K", K, TK)
    rounds = K // TK
    RING = 3
    piece = 32
    across = N // TN
    tiles = M // TM * across

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), HALF), B: Tx.Buffer((N, K), HALF), C: Tx.Buffer((M, N), HALF)):
        with Tx.kernel():
            me = Tx.cta_id([SM_COUNT], parent="kernel")
            group = Tx.warpgroup_id([2], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")

            smem = Tx.PoolAllocator()
            sA = smem.alloc((RING, TM, TK), HALF, layout=smem_tile(RING, TM, TK))
            sB = smem.alloc((RING, TN, TK), HALF, layout=smem_tile(RING, TN, TK))
            sC = smem.alloc((TM, TN), HALF, layout=smem_tile(TM, TN))
            where = smem.alloc((2,), "uint32")
            loaded = smem.alloc((RING,), "uint64")
            eaten = smem.alloc((RING,), "uint64")
            summed = smem.alloc((2,), "uint64")
            drained = MBarrier(smem, 2, "drained")
            smem.commit()

            @Tx.inline
            def fetch(tile, k, s):
                r0 = Tx.meta_var(tile // across * TM)
                c0 = Tx.meta_var(tile % across * TN)
                how = Tx.meta_var({"dispatch": "tma", "cta_group": 1, "mbar": loaded.ptr_to([s])})
                Tx.copy_async(sA[s, :, :], A[r0 : r0 + TM, k * TK : k * TK + TK], **how)
                Tx.copy_async(sB[s, :, :], B[c0 : c0 + TN, k * TK : k * TK + TK], **how)
                Tx.ptx.mbarrier.arrive.expect_tx(loaded.ptr_to([s]), 2 * (TM + TN) * TK)

            drained.init(128)
            if group == 0 and warp == 3:
                Tx.ptx.tcgen05.alloc(Tx.address_of(where), n_cols=256, cta_group=1)
                if lane == 0:
                    for i in Tx.unroll(RING):
                        Tx.ptx.mbarrier.init(loaded.ptr_to([i]), 1)
                        Tx.ptx.mbarrier.init(eaten.ptr_to([i]), 1)
                    for i in Tx.unroll(2):
                        Tx.ptx.mbarrier.init(summed.ptr_to([i]), 1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            acc = Tx.decl_buffer((128, 256), FULL, scope="tmem", allocated_addr=where[0], layout=tmem_of(256))

            tile = me  # every thread counts for itself: its tile, tiles done, K tiles done
            done = 0
            count = 0
            if group == 0:
                if warp == 1:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while tile < tiles:
                            for k in range(rounds):
                                Tx.ptx.mbarrier.try_wait(
                                    eaten.ptr_to([count % RING]), (count // RING + 1) % 2
                                )
                                fetch(tile, k, count % RING)
                                count = count + 1
                            tile = tile + SM_COUNT
                if warp == 2:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while tile < tiles:
                            drained.wait(done % 2, (done // 2 + 1) % 2)
                            Tx.ptx.tcgen05.fence.after_thread_sync()
                            a0 = Tx.meta_var(done % 2 * TN)
                            for k in range(rounds):
                                s = Tx.meta_var(count % RING)
                                Tx.ptx.mbarrier.try_wait(loaded.ptr_to([s]), count // RING % 2)
                                Tx.ptx.tcgen05.fence.after_thread_sync()
                                Tx.gemm_async(
                                    acc[:, a0 : a0 + TN],
                                    sA[s, :, :],
                                    sB[s, :, :],
                                    accum=(k > 0),
                                    dispatch="tcgen05",
                                    cta_group=1,
                                )
                                Tx.ptx.tcgen05.commit(eaten.ptr_to([s]), cta_group=1)
                                count = count + 1
                            Tx.ptx.tcgen05.commit(summed.ptr_to([done % 2]), cta_group=1)
                            done = done + 1
                            tile = tile + SM_COUNT
            else:
                sums = Tx.alloc_local((piece,), FULL)
                small = Tx.alloc_local((piece,), HALF)
                sums_wg = sums.view(128, piece, layout=rows_of(piece))
                while tile < tiles:
                    Tx.ptx.mbarrier.try_wait(summed.ptr_to([done % 2]), done // 2 % 2)
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    if warp == 2:
                        with Tx.thread(parent="warp")[lane == 0]:
                            Tx.ptx.cp_async.bulk.wait_group(0)  # the store of the tile before
                    Tx.cuda.warpgroup_sync(3)
                    for p in Tx.unroll(TN // piece):
                        a1 = Tx.meta_var(done % 2 * TN + p * piece)
                        with Tx.warpgroup():
                            Tx.copy(sums_wg[:, :], acc[:, a1 : a1 + piece])
                        with Tx.thread():
                            Tx.cast(small[:], sums[:])
                            Tx.copy(sC[warp * 32 + lane, p * piece : p * piece + piece], small[:])
                    Tx.ptx.tcgen05.fence.before_thread_sync()
                    drained.arrive(done % 2)
                    Tx.ptx.fence.proxy_async("shared::cta")
                    Tx.cuda.warpgroup_sync(3)
                    if warp == 2:
                        with Tx.thread(parent="warp")[lane == 0]:
                            r0 = Tx.meta_var(tile // across * TM)
                            c0 = Tx.meta_var(tile % across * TN)
                            Tx.copy_async(C[r0 : r0 + TM, c0 : c0 + TN], sC[:, :], dispatch="tma")
                            Tx.ptx.cp_async.bulk.commit_group()
                    done = done + 1
                    tile = tile + SM_COUNT
                if warp == 2:
                    with Tx.thread(parent="warp")[lane == 0]:
                        Tx.ptx.cp_async.bulk.wait_group(0)

            Tx.cuda.cta_sync()
            if group == 0 and warp == 3:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(where[0], n_cols=256, cta_group=1)

    return kernel


def hgemm_v9(M, N, K):
    """Pairs of CTAs: each announces its own bytes to the first one; two accumulators, two output slots."""
    divisible("M", M, 2 * TM)
    divisible("N", N, 2 * TN)
    divisible("K", K, TK)
    rounds = K // TK
    RING = 5
    piece = 64
    wide = 2 * TN
    down = M // (2 * TM)
    tiles = down * (N // wide)
    PAIRS = SM_COUNT // 2
    own_bytes = 2 * (TM + TN) * TK

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), HALF), B: Tx.Buffer((N, K), HALF), C: Tx.Buffer((M, N), HALF)):
        with Tx.kernel():
            rank, _ = Tx.cta_id([2, 1], parent="cluster")
            me = Tx.cta_id([SM_COUNT], parent="kernel")
            group = Tx.warpgroup_id([2], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")

            smem = Tx.PoolAllocator()
            sA = smem.alloc((RING, TM, TK), HALF, layout=smem_tile(RING, TM, TK))
            sB = smem.alloc((RING, TN, TK), HALF, layout=smem_tile(RING, TN, TK))
            sC = smem.alloc((2, TM, piece), HALF, layout=smem_tile(2, TM, piece))
            loaded = TMABar(smem, RING, "loaded")
            eaten = TCGen05Bar(smem, RING, "eaten")
            summed = TCGen05Bar(smem, 2, "summed")
            drained = MBarrier(smem, 2, "drained")
            where = smem.alloc((1,), "uint32")
            smem.commit()
            loaded_first = loaded.remote_view(0)

            @Tx.inline
            def fetch(tile, k, s):
                r0 = Tx.meta_var(tile % down * (2 * TM) + rank * TM)
                b0 = Tx.meta_var(tile // down * wide + rank * TN)
                how = Tx.meta_var({"dispatch": "tma", "cta_group": 2, "mbar": loaded_first.ptr_to([s])})
                loaded_first.arrive(s, own_bytes)
                Tx.copy_async(sA[s, :, :], A[r0 : r0 + TM, k * TK : k * TK + TK], **how)
                Tx.copy_async(sB[s, :, :], B[b0 : b0 + TN, k * TK : k * TK + TK], **how)

            loaded.init(2)  # one announcement by each CTA
            eaten.init(1)
            summed.init(1)
            drained.init(256)
            if group == 1 and warp == 0:
                Tx.ptx.tcgen05.alloc(Tx.address_of(where), n_cols=512, cta_group=2)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cluster_sync()
            acc = Tx.decl_buffer((128, 512), FULL, scope="tmem", allocated_addr=where[0], layout=tmem_of(512))

            tile = me // 2
            done = 0
            count = 0
            if group == 0:
                if warp == 2:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while tile < tiles:
                            for k in range(rounds):
                                eaten.wait(count % RING, (count // RING + 1) % 2)
                                fetch(tile, k, count % RING)
                                count = count + 1
                            tile = tile + PAIRS
                if warp == 0 and rank == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while tile < tiles:
                            drained.wait(done % 2, (done // 2 + 1) % 2)
                            Tx.ptx.tcgen05.fence.after_thread_sync()
                            for k in range(rounds):
                                s = Tx.meta_var(count % RING)
                                a0 = Tx.meta_var(done % 2 * wide)
                                loaded.wait(s, count // RING % 2)
                                Tx.ptx.tcgen05.fence.after_thread_sync()
                                Tx.gemm_async(
                                    acc[:, a0 : a0 + wide],
                                    sA[s, :, :],
                                    sB[s, :, :],
                                    accum=(k > 0),
                                    dispatch="tcgen05",
                                    cta_group=2,
                                )
                                eaten.arrive(s, cta_group=2, cta_mask=3)
                                count = count + 1
                            summed.arrive(done % 2, cta_group=2, cta_mask=3)
                            done = done + 1
                            tile = tile + PAIRS
            if group == 1:
                sums = Tx.alloc_local((piece,), FULL)
                small = Tx.alloc_local((piece,), HALF)
                sums_wg = sums.view(128, piece, layout=rows_of(piece))
                while tile < tiles:
                    summed.wait(done % 2, done // 2 % 2)
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for p in Tx.unroll(wide // piece):
                        a1 = Tx.meta_var(done % 2 * wide + p * piece)
                        with Tx.warpgroup():
                            Tx.copy(sums_wg[:, :], acc[:, a1 : a1 + piece])
                        if p == wide // piece - 1:
                            Tx.ptx.tcgen05.fence.before_thread_sync()
                            drained.arrive(done % 2, cta_id=0)
                        if warp == 3:
                            with Tx.thread(parent="warp")[lane == 0]:
                                Tx.ptx.cp_async.bulk.wait_group(1)  # the other slot may still be read
                        Tx.cuda.warpgroup_sync(1)
                        with Tx.thread():
                            Tx.cast(small[:], sums[:])
                            Tx.copy(sC[p % 2, warp * 32 + lane, :], small[:])
                        Tx.ptx.fence.proxy_async("shared::cta")
                        Tx.cuda.warpgroup_sync(1)
                        if warp == 3:
                            with Tx.thread(parent="warp")[lane == 0]:
                                r0 = Tx.meta_var(tile % down * (2 * TM) + rank * TM)
                                c0 = Tx.meta_var(tile // down * wide + p * piece)
                                Tx.copy_async(
                                    C[r0 : r0 + TM, c0 : c0 + piece], sC[p % 2, :, :], dispatch="tma"
                                )
                                Tx.ptx.cp_async.bulk.commit_group()
                    done = done + 1
                    tile = tile + PAIRS
                if warp == 3:
                    with Tx.thread(parent="warp")[lane == 0]:
                        Tx.ptx.cp_async.bulk.wait_group(0)

            Tx.cuda.cluster_sync()
            if group == 1 and warp == 0:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=2)
                Tx.ptx.tcgen05.dealloc(where[0], n_cols=512, cta_group=2)

    return kernel


def hgemm_v10(M, N, K):
    """512x256 per pair: one thread issues both products of a K tile and returns the stage by one commit."""
    divisible("M", M, 4 * TM)
    divisible("N", N, 2 * TN)
    divisible("K", K, TK)
    rounds = K // TK
    RING = 3
    piece = 32
    wide = 2 * TN
    across = N // wide
    tiles = M // (4 * TM) * across
    PAIRS = SM_COUNT // 2
    own_bytes = 2 * (2 * TM + TN) * TK

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), HALF), B: Tx.Buffer((N, K), HALF), C: Tx.Buffer((M, N), HALF)):
        with Tx.kernel():
            rank, _ = Tx.cta_id([2, 1], parent="cluster")
            me = Tx.cta_id([SM_COUNT], parent="kernel")
            group = Tx.warpgroup_id([3], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")

            smem = Tx.PoolAllocator()
            sC = smem.alloc((2, 2, TM, 64), HALF, layout=smem_tile(2, 2, TM, 64))
            sA = smem.alloc((RING, 2, TM, TK), HALF, layout=smem_tile(RING, 2, TM, TK))
            sB = smem.alloc((RING, TN, TK), HALF, layout=smem_tile(RING, TN, TK))
            where = smem.alloc((2,), "uint32")
            loaded = TMABar(smem, RING, "loaded")
            eaten = TCGen05Bar(smem, RING, "eaten")
            summed = TCGen05Bar(smem, 2, "summed")
            drained = MBarrier(smem, 2, "drained")
            smem.commit()
            loaded_first = loaded.remote_view(0)

            @Tx.inline
            def fetch(tile, k, s):
                r0 = Tx.meta_var(tile // across * (4 * TM) + rank * (2 * TM))
                b0 = Tx.meta_var(tile % across * wide + rank * TN)
                how = Tx.meta_var({"dispatch": "tma", "cta_group": 2, "mbar": loaded_first.ptr_to([s])})
                loaded_first.arrive(s, own_bytes)
                Tx.copy_async(sA[s, 0, :, :], A[r0 : r0 + TM, k * TK : k * TK + TK], **how)
                Tx.copy_async(sA[s, 1, :, :], A[r0 + TM : r0 + 2 * TM, k * TK : k * TK + TK], **how)
                Tx.copy_async(sB[s, :, :], B[b0 : b0 + TN, k * TK : k * TK + TK], **how)

            @Tx.inline
            def multiply(c, s, k):
                Tx.gemm_async(
                    acc[:, c * wide : c * wide + wide],
                    sA[s, c, :, :],
                    sB[s, :, :],
                    accum=(k > 0),
                    dispatch="tcgen05",
                    cta_group=2,
                )

            loaded.init(2)
            eaten.init(1)
            summed.init(1)
            drained.init(256)
            if group == 2 and warp == 1:
                Tx.ptx.tcgen05.alloc(Tx.address_of(where), n_cols=512, cta_group=2)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cluster_sync()
            acc = Tx.decl_buffer((128, 512), FULL, scope="tmem", allocated_addr=where[0], layout=tmem_of(512))

            tile = me // 2
            done = 0
            count = 0
            if group == 2:
                if warp == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while tile < tiles:
                            for k in range(rounds):
                                eaten.wait(count % RING, (count // RING + 1) % 2)
                                fetch(tile, k, count % RING)
                                count = count + 1
                            tile = tile + PAIRS
                if warp == 2 and rank == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while tile < tiles:
                            for k in range(rounds):
                                s = Tx.meta_var(count % RING)
                                loaded.wait(s, count // RING % 2)
                                if k == 0:
                                    drained.wait(0, (done + 1) % 2)
                                Tx.ptx.tcgen05.fence.after_thread_sync()
                                multiply(0, s, k)
                                if k == rounds - 1:
                                    summed.arrive(0, cta_group=2, cta_mask=3)
                                if k == 0:
                                    drained.wait(1, (done + 1) % 2)
                                    Tx.ptx.tcgen05.fence.after_thread_sync()
                                multiply(1, s, k)
                                eaten.arrive(s, cta_group=2, cta_mask=3)
                                count = count + 1
                            summed.arrive(1, cta_group=2, cta_mask=3)
                            done = done + 1
                            tile = tile + PAIRS
            else:
                sums = Tx.alloc_local((piece,), FULL)
                small = Tx.alloc_local((piece,), HALF)
                sums_wg = sums.view(128, piece, layout=rows_of(piece))
                while tile < tiles:
                    summed.wait(group, done % 2)
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for q in Tx.unroll(wide // 64):
                        if warp == 1:
                            with Tx.thread(parent="warp")[lane == 0]:
                                Tx.ptx.cp_async.bulk.wait_group(1)
                        Tx.cuda.warpgroup_sync(4 + group)
                        for p in Tx.unroll(64 // piece):
                            a1 = Tx.meta_var(group * wide + q * 64 + p * piece)
                            with Tx.warpgroup():
                                Tx.copy(sums_wg[:, :], acc[:, a1 : a1 + piece])
                            with Tx.thread():
                                Tx.cast(small[:], sums[:])
                                Tx.copy(
                                    sC[group, q % 2, warp * 32 + lane, p * piece : p * piece + piece],
                                    small[:],
                                )
                        if q == wide // 64 - 1:
                            Tx.ptx.tcgen05.fence.before_thread_sync()
                            drained.arrive(group, cta_id=0)
                        Tx.ptx.fence.proxy_async("shared::cta")
                        Tx.cuda.warpgroup_sync(4 + group)
                        if warp == 1:
                            with Tx.thread(parent="warp")[lane == 0]:
                                r0 = Tx.meta_var(tile // across * (4 * TM) + rank * (2 * TM) + group * TM)
                                c0 = Tx.meta_var(tile % across * wide + q * 64)
                                Tx.copy_async(
                                    C[r0 : r0 + TM, c0 : c0 + 64], sC[group, q % 2, :, :], dispatch="tma"
                                )
                                Tx.ptx.cp_async.bulk.commit_group()
                    done = done + 1
                    tile = tile + PAIRS
                if warp == 1:
                    with Tx.thread(parent="warp")[lane == 0]:
                        Tx.ptx.cp_async.bulk.wait_group(0)

            Tx.cuda.cluster_sync()
            if group == 2 and warp == 1:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=2)
                Tx.ptx.tcgen05.dealloc(where[0], n_cols=512, cta_group=2)

    return kernel
