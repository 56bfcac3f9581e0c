"""Hand-in of student two: steps 5, 6, 8 and 10. Barrier classes everywhere, states in place of counters."""

# ruff: noqa: SIM102, F841

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

SM_COUNT = 148
BM = BN = 128
BK = 64
SLAB = BM * BK * 2  # bytes of one 128x64 block
ROWS_X_COLS = TileLayout(S[(128, 512) : (1 @ TLane, 1 @ TCol)])
STRIP = 64  # columns per TMEM read
STRIP_LAYOUT = TileLayout(S[(128, STRIP) : (1 @ axis_tid_in_wg, 1)])


def swizzled(*dims):
    return tma_shared_layout("float16", SwizzleMode.SWIZZLE_128B_ATOM, dims)


def need(ok, text):
    if not ok:
        raise ValueError(text)


def hgemm_v5(M, N, K):
    """One warp loads, one multiplies; each strip is stored by a warp of its own."""
    need(M > 0 and M % BM == 0, "M must be a multiple of 128")
    need(N > 0 and N % BN == 0, "N must be a multiple of 128")
    need(K > 0 and K % BK == 0, "K must be a multiple of 64")
    DEPTH = 4
    KT = K // BK

    @Tx.prim_func(tirx=True)
    def kernel(
        X: Tx.Buffer((M, K), "float16"), W: Tx.Buffer((N, K), "float16"), Y: Tx.Buffer((M, N), "float16")
    ):
        with Tx.kernel():
            cta = Tx.cta_id([(M // BM) * (N // BN)], parent="kernel")
            wg = Tx.warpgroup_id([1], parent="cta")
            w = Tx.warp_id([4], parent="warpgroup")
            t = Tx.thread_id([32], parent="warp")
            m = Tx.meta_var(cta // (N // BN) * BM)
            n = Tx.meta_var(cta % (N // BN) * BN)

            arena = Tx.PoolAllocator()
            tm_at = arena.alloc((1,), "uint32")
            full = TMABar(arena, DEPTH, "full")
            empty = TCGen05Bar(arena, DEPTH, "empty")
            tile_full = TCGen05Bar(arena, 1, "tile_full")
            arena.move_base_to(1024)
            xs = arena.alloc((DEPTH, BM, BK), "float16", layout=swizzled(DEPTH, BM, BK))
            ws = arena.alloc((DEPTH, BN, BK), "float16", layout=swizzled(DEPTH, BN, BK))
            out = arena.alloc((2, BM, STRIP), "float16", layout=swizzled(2, BM, STRIP))
            arena.commit()

            filling = PipelineState("filling", DEPTH)
            using = PipelineState("using", DEPTH)
            filling.init(is_producer=True)
            using.init(is_producer=False)
            full.init(1)
            empty.init(1)
            tile_full.init(1)
            if w == 3:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tm_at), n_cols=512, cta_group=1)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            prod = Tx.decl_buffer(
                (128, 512), "float32", scope="tmem", allocated_addr=tm_at[0], layout=ROWS_X_COLS
            )

            if w == 0 and Tx.ptx.elect_sync():
                with Tx.thread():
                    for k in range(KT):
                        how = Tx.meta_var(
                            {"dispatch": "tma", "cta_group": 1, "mbar": full.ptr_to([filling.stage])}
                        )
                        empty.wait(filling.stage, filling.phase)
                        Tx.copy_async(xs[filling.stage, :, :], X[m : m + BM, k * BK : k * BK + BK], **how)
                        Tx.copy_async(ws[filling.stage, :, :], W[n : n + BN, k * BK : k * BK + BK], **how)
                        full.arrive(filling.stage, 2 * SLAB)
                        filling.move_to_next_stage()
            if w == 1 and Tx.ptx.elect_sync():
                with Tx.thread():
                    for k in range(KT):
                        full.wait(using.stage, using.phase)
                        Tx.ptx.tcgen05.fence.after_thread_sync()
                        Tx.gemm_async(
                            prod[:, BN : 2 * BN],
                            xs[using.stage, :, :],
                            ws[using.stage, :, :],
                            accum=(k != 0),
                            dispatch="tcgen05",
                            cta_group=1,
                        )
                        empty.arrive(using.stage, cta_group=1)
                        using.move_to_next_stage()
                    tile_full.arrive(0, cta_group=1)

            tile_full.wait(0, 0)
            Tx.ptx.tcgen05.fence.after_thread_sync()
            f32 = Tx.alloc_local((STRIP,), "float32")
            f16 = Tx.alloc_local((STRIP,), "float16")
            f32_wg = f32.view(128, STRIP, layout=STRIP_LAYOUT)
            for q in Tx.unroll(2):
                with Tx.warpgroup():
                    Tx.copy(f32_wg[:, :], prod[:, BN + q * STRIP : BN + q * STRIP + STRIP])
                with Tx.thread():
                    Tx.cast(f16[:], f32[:])
                    Tx.copy(out[q, w * 32 + t, :], f16[:])
                Tx.ptx.fence.proxy_async("shared::cta")
                Tx.ptx.tcgen05.fence.before_thread_sync()
                Tx.cuda.cta_sync()
                if w == q:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        nn = Tx.meta_var(n + q * STRIP)
                        Tx.copy_async(Y[m : m + BM, nn : nn + STRIP], out[q, :, :], dispatch="tma")
                        Tx.ptx.cp_async.bulk.commit_group()
                        Tx.ptx.cp_async.bulk.wait_group(0)
            if w == 3:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tm_at[0], n_cols=512, cta_group=1)

    return kernel


def hgemm_v6(M, N, K):
    """The load index runs on over the end of a tile: the next tile arrives while this one is written back."""
    need(M > 0 and M % BM == 0, "M must be a multiple of 128")
    need(N > 0 and N % BN == 0, "N must be a multiple of 128")
    need(K > 0 and K % BK == 0, "K must be a multiple of 64")
    DEPTH = 3
    KT = K // BK
    MT = M // BM
    ALL = MT * (N // BN)

    @Tx.prim_func(tirx=True)
    def kernel(
        X: Tx.Buffer((M, K), "float16"), W: Tx.Buffer((N, K), "float16"), Y: Tx.Buffer((M, N), "float16")
    ):
        with Tx.kernel():
            cta = Tx.cta_id([SM_COUNT], parent="kernel")
            wg = Tx.warpgroup_id([1], parent="cta")
            w = Tx.warp_id([4], parent="warpgroup")
            t = Tx.thread_id([32], parent="warp")
            mine = Tx.meta_var((ALL - cta + SM_COUNT - 1) // SM_COUNT)  # tiles of this CTA

            arena = Tx.PoolAllocator()
            out = arena.alloc((BM, BN), "float16", layout=swizzled(BM, BN))
            xs = arena.alloc((DEPTH, BM, BK), "float16", layout=swizzled(DEPTH, BM, BK))
            ws = arena.alloc((DEPTH, BN, BK), "float16", layout=swizzled(DEPTH, BN, BK))
            ready = TMABar(arena, DEPTH, "ready")
            spent = TCGen05Bar(arena, 1, "spent")
            tm_at = arena.alloc((1,), "uint32")
            arena.commit()

            ring = PipelineState("ring", DEPTH)
            one = PipelineState("one", 1)
            ring.init(is_producer=False)
            one.init(is_producer=False)

            @Tx.inline
            def load(g, slot):
                # g counts the K steps of all tiles of this CTA
                tile = Tx.meta_var(cta + g // KT * SM_COUNT)
                m = Tx.meta_var(tile % MT * BM)
                n = Tx.meta_var(tile // MT * BN)
                kk = Tx.meta_var(g % KT * BK)
                ready.arrive(slot, 2 * SLAB)
                Tx.copy_async(
                    xs[slot, :, :],
                    X[m : m + BM, kk : kk + BK],
                    dispatch="tma",
                    cta_group=1,
                    mbar=ready.ptr_to([slot]),
                )
                Tx.copy_async(
                    ws[slot, :, :],
                    W[n : n + BN, kk : kk + BK],
                    dispatch="tma",
                    cta_group=1,
                    mbar=ready.ptr_to([slot]),
                )

            ready.init(1)
            spent.init(1)
            if w == 2:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tm_at), n_cols=512, cta_group=1)
            Tx.ptx.fence.mbarrier_init()
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.cuda.cta_sync()
            prod = Tx.decl_buffer(
                (128, 512), "float32", scope="tmem", allocated_addr=tm_at[0], layout=ROWS_X_COLS
            )
            f32 = Tx.alloc_local((STRIP,), "float32")
            f16 = Tx.alloc_local((BN,), "float16")
            f32_wg = f32.view(128, STRIP, layout=STRIP_LAYOUT)

            if w == 1:
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    for i in Tx.unroll(DEPTH):
                        if i < mine * KT:
                            load(i, i)
            for j in range(mine):
                if w == 1:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        for k in range(KT):
                            ready.wait(ring.stage, ring.phase)
                            Tx.ptx.tcgen05.fence.after_thread_sync()
                            Tx.gemm_async(
                                prod[:, :BN],
                                xs[ring.stage, :, :],
                                ws[ring.stage, :, :],
                                accum=(k != 0),
                                dispatch="tcgen05",
                                cta_group=1,
                            )
                            spent.arrive(0, cta_group=1)
                            spent.wait(0, one.phase)
                            one.move_to_next_stage()
                            if j * KT + k + DEPTH < mine * KT:
                                load(j * KT + k + DEPTH, ring.stage)
                            ring.move_to_next_stage()
                Tx.cuda.cta_sync()  # the product is there, and the store of the last tile is over
                Tx.ptx.tcgen05.fence.after_thread_sync()
                for q in Tx.unroll(BN // STRIP):
                    with Tx.warpgroup():
                        Tx.copy(f32_wg[:, :], prod[:, q * STRIP : q * STRIP + STRIP])
                    with Tx.thread():
                        Tx.cast(f16[q * STRIP : q * STRIP + STRIP], f32[:])
                with Tx.thread():
                    Tx.copy(out[w * 32 + t, :], f16[:])
                Tx.ptx.fence.proxy_async("shared::cta")
                Tx.ptx.tcgen05.fence.before_thread_sync()
                Tx.cuda.cta_sync()
                if w == 3:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        m = Tx.meta_var((cta + j * SM_COUNT) % MT * BM)
                        n = Tx.meta_var((cta + j * SM_COUNT) // MT * BN)
                        Tx.copy_async(Y[m : m + BM, n : n + BN], out[:, :], dispatch="tma")
                        Tx.ptx.cp_async.bulk.commit_group()
                        Tx.ptx.cp_async.bulk.wait_group(0)

            if w == 2:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tm_at[0], n_cols=512, cta_group=1)

    return kernel


def hgemm_v8(M, N, K):
    """Two warps load, one X and one W; a single thread hands the accumulator back for its whole warpgroup."""
    need(M > 0 and M % BM == 0, "M must be a multiple of 128")
    need(N > 0 and N % BN == 0, "N must be a multiple of 128")
    need(K > 0 and K % BK == 0, "K must be a multiple of 64")
    DEPTH = 5
    KT = K // BK

    @Tx.prim_func(tirx=True)
    def kernel(
        X: Tx.Buffer((M, K), "float16"), W: Tx.Buffer((N, K), "float16"), Y: Tx.Buffer((M, N), "float16")
    ):
        with Tx.kernel():
            cta = Tx.cta_id([SM_COUNT], parent="kernel")
            wg = Tx.warpgroup_id([2], parent="cta")
            w = Tx.warp_id([4], parent="warpgroup")
            t = Tx.thread_id([32], parent="warp")

            arena = Tx.PoolAllocator()
            full = TMABar(arena, DEPTH, "full")
            empty = TCGen05Bar(arena, DEPTH, "empty")
            tile_full = TCGen05Bar(arena, 1, "tile_full")
            tile_empty = MBarrier(arena, 1, "tile_empty")
            tm_at = arena.alloc((1,), "uint32")
            arena.move_base_to(2048)
            out = arena.alloc((2, BM, STRIP), "float16", layout=swizzled(2, BM, STRIP))
            ws = arena.alloc((DEPTH, BN, BK), "float16", layout=swizzled(DEPTH, BN, BK))
            xs = arena.alloc((DEPTH, BM, BK), "float16", layout=swizzled(DEPTH, BM, BK))
            arena.commit()

            job = ClusterPersistentScheduler2D(
                "job", num_m_tiles=M // BM, num_n_tiles=N // BN, l2_group_size=4, num_clusters=SM_COUNT
            )
            job.init(cta)
            m = Tx.meta_var(job.m_idx * BM)
            n = Tx.meta_var(job.n_idx * BN)

            filling = PipelineState("filling", DEPTH)
            using = PipelineState("using", DEPTH)
            lending = PipelineState("lending", 1)
            reading = PipelineState("reading", 1)
            filling.init(is_producer=True)
            using.init(is_producer=False)
            lending.init(is_producer=True)
            reading.init(is_producer=False)

            full.init(2)  # the two loading warps
            empty.init(1)
            tile_full.init(1)
            tile_empty.init(1)  # one thread, for all 128
            if wg == 1 and w == 1:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tm_at), n_cols=512, cta_group=1)
            Tx.ptx.fence.mbarrier_init()
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.cuda.cta_sync()
            prod = Tx.decl_buffer(
                (128, 512), "float32", scope="tmem", allocated_addr=tm_at[0], layout=ROWS_X_COLS
            )

            @Tx.inline
            def step(first):
                full.wait(using.stage, using.phase)
                Tx.ptx.tcgen05.fence.after_thread_sync()
                Tx.gemm_async(
                    prod[:, :BN],
                    xs[using.stage, :, :],
                    ws[using.stage, :, :],
                    accum=not first,
                    dispatch="tcgen05",
                    cta_group=1,
                )
                empty.arrive(using.stage, cta_group=1)
                using.move_to_next_stage()

            if wg == 0:
                if w == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while job.valid():
                            for k in range(KT):
                                empty.wait(filling.stage, filling.phase)
                                full.arrive(filling.stage, SLAB)
                                Tx.copy_async(
                                    xs[filling.stage, :, :],
                                    X[m : m + BM, k * BK : k * BK + BK],
                                    dispatch="tma",
                                    cta_group=1,
                                    mbar=full.ptr_to([filling.stage]),
                                )
                                filling.move_to_next_stage()
                            job.next_tile()
                if w == 1:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while job.valid():
                            for k in range(KT):
                                empty.wait(filling.stage, filling.phase)
                                full.arrive(filling.stage, SLAB)
                                Tx.copy_async(
                                    ws[filling.stage, :, :],
                                    W[n : n + BN, k * BK : k * BK + BK],
                                    dispatch="tma",
                                    cta_group=1,
                                    mbar=full.ptr_to([filling.stage]),
                                )
                                filling.move_to_next_stage()
                            job.next_tile()
                if w == 2:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while job.valid():
                            tile_empty.wait(0, lending.phase)
                            lending.move_to_next_stage()
                            step(True)
                            for _ in range(KT - 1):
                                step(False)
                            tile_full.arrive(0, cta_group=1)
                            job.next_tile()
            if wg == 1:
                f32 = Tx.alloc_local((STRIP,), "float32")
                f16 = Tx.alloc_local((STRIP,), "float16")
                f32_wg = f32.view(128, STRIP, layout=STRIP_LAYOUT)
                while job.valid():
                    if w == 0:
                        with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                            Tx.ptx.cp_async.bulk.wait_group(0)  # both strips of the tile before
                    Tx.cuda.warpgroup_sync(2)
                    tile_full.wait(0, reading.phase)
                    reading.move_to_next_stage()
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for q in Tx.unroll(2):
                        with Tx.warpgroup():
                            Tx.copy(f32_wg[:, :], prod[:, q * STRIP : q * STRIP + STRIP])
                        with Tx.thread():
                            Tx.cast(f16[:], f32[:])
                            Tx.copy(out[q, w * 32 + t, :], f16[:])
                    Tx.ptx.tcgen05.fence.before_thread_sync()
                    Tx.ptx.fence.proxy_async("shared::cta")
                    Tx.cuda.warpgroup_sync(2)  # out is complete and the accumulator read
                    if w == 0:
                        with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                            tile_empty.arrive(0)
                            for q in Tx.unroll(2):
                                nn = Tx.meta_var(n + q * STRIP)
                                Tx.copy_async(Y[m : m + BM, nn : nn + STRIP], out[q, :, :], dispatch="tma")
                            Tx.ptx.cp_async.bulk.commit_group()
                    job.next_tile()
                if w == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        Tx.ptx.cp_async.bulk.wait_group(0)

            Tx.cuda.cta_sync()
            if wg == 1 and w == 1:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
                Tx.ptx.tcgen05.dealloc(tm_at[0], n_cols=512, cta_group=1)

    return kernel


def hgemm_v10(M, N, K):
    """512x256 per pair of CTAs: block c of the pair is 256 rows, 128 for each CTA; WG1 and WG2 write them."""
    need(M > 0 and M % 512 == 0, "M must be a multiple of 512")
    need(N > 0 and N % 256 == 0, "N must be a multiple of 256")
    need(K > 0 and K % BK == 0, "K must be a multiple of 64")
    DEPTH = 3
    KT = K // BK
    WIDE = 2 * BN

    @Tx.prim_func(tirx=True)
    def kernel(
        X: Tx.Buffer((M, K), "float16"), W: Tx.Buffer((N, K), "float16"), Y: Tx.Buffer((M, N), "float16")
    ):
        with Tx.kernel():
            side, zero = Tx.cta_id([2, 1], parent="cluster")
            cta = Tx.cta_id([SM_COUNT], parent="kernel")
            wg = Tx.warpgroup_id([3], parent="cta")
            w = Tx.warp_id([4], parent="warpgroup")
            t = Tx.thread_id([32], parent="warp")

            arena = Tx.PoolAllocator()
            xs = arena.alloc((DEPTH, 2, BM, BK), "float16", layout=swizzled(DEPTH, 2, BM, BK))
            ws = arena.alloc((DEPTH, BN, BK), "float16", layout=swizzled(DEPTH, BN, BK))
            out = arena.alloc((2, 2, BM, STRIP), "float16", layout=swizzled(2, 2, BM, STRIP))
            full = TMABar(arena, DEPTH, "full")
            empty = TCGen05Bar(arena, DEPTH, "empty")
            tile_full = TCGen05Bar(arena, 2, "tile_full")
            tile_empty = MBarrier(arena, 2, "tile_empty")
            tm_at = arena.alloc((1,), "uint32")
            arena.commit()
            full_of_0 = full.remote_view(0)

            job = ClusterPersistentScheduler2D(
                "job",
                num_m_tiles=M // 512,
                num_n_tiles=N // WIDE,
                l2_group_size=4,
                num_clusters=SM_COUNT // 2,
            )
            job.init(cta // 2)

            src = PipelineState("src", DEPTH)
            ring = PipelineState("ring", DEPTH)
            own = PipelineState("own", 1)
            acc = PipelineState("acc", 1)
            src.init(is_producer=True)
            ring.init(is_producer=False)
            own.init(is_producer=True)
            acc.init(is_producer=False)

            full.init(1)  # the first CTA announces for both
            empty.init(2)  # both multiplying warps have used the slot
            tile_full.init(1)
            tile_empty.init(256)
            if wg == 2 and w == 3:
                Tx.ptx.tcgen05.alloc(Tx.address_of(tm_at), n_cols=512, cta_group=2)
            Tx.ptx.fence.proxy_async("shared::cta")
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cluster_sync()
            prod = Tx.decl_buffer(
                (128, 512), "float32", scope="tmem", allocated_addr=tm_at[0], layout=ROWS_X_COLS
            )

            if wg == 0:
                if w == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        while job.valid():
                            nw = Tx.meta_var(job.n_idx * WIDE + side * BN)
                            for k in range(KT):
                                how = Tx.meta_var(
                                    {
                                        "dispatch": "tma",
                                        "cta_group": 2,
                                        "mbar": full_of_0.ptr_to([src.stage]),
                                    }
                                )
                                kk = Tx.meta_var(k * BK)
                                empty.wait(src.stage, src.phase)
                                if side == 0:
                                    full_of_0.arrive(src.stage, 6 * SLAB)
                                Tx.copy_async(ws[src.stage, :, :], W[nw : nw + BN, kk : kk + BK], **how)
                                for c in Tx.unroll(2):
                                    mx = Tx.meta_var(job.m_idx * 512 + c * 256 + side * BM)
                                    Tx.copy_async(
                                        xs[src.stage, c, :, :], X[mx : mx + BM, kk : kk + BK], **how
                                    )
                                src.move_to_next_stage()
                            job.next_tile()
                if side == 0 and (w == 1 or w == 2):
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        c = Tx.meta_var(w - 1)
                        while job.valid():
                            tile_empty.wait(c, own.phase)
                            own.move_to_next_stage()
                            Tx.ptx.tcgen05.fence.after_thread_sync()
                            for k in range(KT):
                                full.wait(ring.stage, ring.phase)
                                Tx.ptx.tcgen05.fence.after_thread_sync()
                                Tx.gemm_async(
                                    prod[:, c * WIDE : c * WIDE + WIDE],
                                    xs[ring.stage, c, :, :],
                                    ws[ring.stage, :, :],
                                    accum=(k != 0),
                                    dispatch="tcgen05",
                                    cta_group=2,
                                )
                                empty.arrive(ring.stage, cta_group=2, cta_mask=3)
                                ring.move_to_next_stage()
                            tile_full.arrive(c, cta_group=2, cta_mask=3)
                            job.next_tile()
            else:
                f32 = Tx.alloc_local((STRIP,), "float32")
                f16 = Tx.alloc_local((STRIP,), "float16")
                f32_wg = f32.view(128, STRIP, layout=STRIP_LAYOUT)
                b = Tx.meta_var(wg - 1)  # the block of this warpgroup
                while job.valid():
                    tile_full.wait(b, acc.phase)
                    acc.move_to_next_stage()
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for q in Tx.unroll(WIDE // STRIP):
                        if w == 0:
                            with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                                Tx.ptx.cp_async.bulk.wait_group(1)
                        Tx.cuda.warpgroup_sync(wg)
                        p0 = Tx.meta_var(b * WIDE + q * STRIP)
                        with Tx.warpgroup():
                            Tx.copy(f32_wg[:, :], prod[:, p0 : p0 + STRIP])
                        with Tx.thread():
                            Tx.cast(f16[:], f32[:])
                            Tx.copy(out[b, q % 2, w * 32 + t, :], f16[:])
                        Tx.ptx.fence.proxy_async("shared::cta")
                        Tx.cuda.warpgroup_sync(wg)
                        if w == 0:
                            with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                                my = Tx.meta_var(job.m_idx * 512 + b * 256 + side * BM)
                                ny = Tx.meta_var(job.n_idx * WIDE + q * STRIP)
                                Tx.copy_async(
                                    Y[my : my + BM, ny : ny + STRIP], out[b, q % 2, :, :], dispatch="tma"
                                )
                                Tx.ptx.cp_async.bulk.commit_group()
                    Tx.ptx.tcgen05.fence.before_thread_sync()
                    tile_empty.arrive(b, cta_id=0)
                    job.next_tile()
                if w == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        Tx.ptx.cp_async.bulk.wait_group(0)

            Tx.cuda.cluster_sync()
            if wg == 2 and w == 3:
                Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=2)
                Tx.ptx.tcgen05.dealloc(tm_at[0], n_cols=512, cta_group=2)

    return kernel
