"""GEMM on Hopper (sm_90a): TMA into shared memory, wgmma from there, accumulators in registers.

Rung 1, `build_gemm_m64n64(M, N, K)`, gives a function: D = function(A, B) = A @ B with A (M, K) and B (K, N)
bfloat16, D (M, N) float32, all row-major: A is K-major, B is N-major.

Rungs 2 to 9, `build_gemm_ring` to `build_gemm_curve`, climb from there to the speed of cuBLAS, each one idea
away from another. D = function(A, B) = A @ B.T with A (M, K), B (N, K) as torch.nn.Linear keeps its weights,
and D (M, N), all three of `dtype` (bfloat16, float16), row-major. M is any size, N and K multiples of 8.

Shapes that do not fit raise ValueError. tracks/hopper/NOTES.md has what each rung brought on a chip.
"""

# ruff: noqa: F821, F823, F841
# (names that only a solution defines or uses)

from tirxlab import MBarrier, PipelineState, SwizzleMode, TMABar, Tx, tma_shared_layout
from tirxlab.functions import compiled

BF16, F16, F32 = "bfloat16", "float16", "float32"
BF16_BYTES = 2
BM, BN = 64, 64  # one CTA, one warpgroup, computes BM x BN of D
MMA_K = 16  # K of wgmma with 16-bit operands
# A row of the tile decides the swizzle: tile_k bf16 of A, BN bf16 of B.
SWIZZLE_OF_ROW = {
    32: SwizzleMode.SWIZZLE_32B_ATOM,
    64: SwizzleMode.SWIZZLE_64B_ATOM,
    128: SwizzleMode.SWIZZLE_128B_ATOM,
}


def build_gemm_m64n64(M, N, K, *, tile_k=16):
    """The kernel for one problem size; it loads `tile_k` (16, 32 or 64) columns of A at a time."""
    if tile_k not in (16, 32, 64):
        raise ValueError(f"tile_k must be 16, 32 or 64 (got {tile_k})")
    for name, given, unit in (("M", M, BM), ("N", N, BN), ("K", K, tile_k)):
        if not isinstance(given, int) or given <= 0 or given % unit:
            raise ValueError(f"{name} must be a multiple of {unit} (got {given})")
    # TODO[begin] K_TILES: in how many steps the kernel walks along K. (Then delete the `raise`.)
    # > raise NotImplementedError("build_gemm_m64n64 is not implemented yet")
    K_TILES = K // tile_k
    # TODO[end]
    A_ROW, B_ROW = tile_k * BF16_BYTES, BN * BF16_BYTES
    TILE_BYTES = BM * A_ROW + tile_k * B_ROW
    A_SWIZZLE, B_SWIZZLE = SWIZZLE_OF_ROW[A_ROW], SWIZZLE_OF_ROW[B_ROW]

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), BF16), B: Tx.Buffer((K, N), BF16), D: Tx.Buffer((M, N), F32)):
        with Tx.kernel():
            n_tile, m_tile = Tx.cta_id([N // BN, M // BM], parent="kernel")
            warp_id = Tx.warp_id([4], parent="cta")
            lane_id = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([128], parent="cta")
            m_st = Tx.meta_var(m_tile * BM)
            n_st = Tx.meta_var(n_tile * BN)

            pool = Tx.PoolAllocator()
            # One barrier per K tile, each used for one phase: 1 arrival (expect_tx) and TILE_BYTES by TMA.
            loaded = TMABar(pool, K_TILES, "loaded")
            pool.move_base_to((K_TILES * 8 + 1023) // 1024 * 1024)
            Asmem = pool.alloc((BM, tile_k), BF16, layout=tma_shared_layout(BF16, A_SWIZZLE, (BM, tile_k)))
            Bsmem = pool.alloc((tile_k, BN), BF16, layout=tma_shared_layout(BF16, B_SWIZZLE, (tile_k, BN)))
            pool.commit()
            acc = Tx.alloc_local((BN // 2,), F32)  # 64 x 64 over 128 threads
            a_desc = Tx.alloc_local((1,), "uint64")
            b_desc = Tx.alloc_local((1,), "uint64")

            loaded.init(1)
            Tx.ptx.fence.mbarrier_init()
            Tx.ptx.fence.proxy_async("shared::cta")

            # TODO[begin] Write `@Tx.inline def load(k)`, for one thread: loaded.arrive(k, TILE_BYTES)
            # | announces the bytes; two Tx.copy_async with dispatch="tma" and
            # | mbar=loaded.ptr_to([k]) fetch columns k*tile_k .. of A's rows m_st .., and rows
            # | k*tile_k .. of B's columns n_st ..
            @Tx.inline
            def load(k):
                """One thread: announce the bytes of tile k, ask TMA for them, at (k, row) and (col, k)."""
                k_st = Tx.meta_var(k * tile_k)
                tma = Tx.meta_var({"dispatch": "tma", "mbar": loaded.ptr_to([k])})
                loaded.arrive(k, TILE_BYTES)
                Tx.copy_async(Asmem[:, :], A[m_st : m_st + BM, k_st : k_st + tile_k], **tma)
                Tx.copy_async(Bsmem[:, :], B[k_st : k_st + tile_k, n_st : n_st + BN], **tma)

            # TODO[end]

            # TODO[begin] Write `@Tx.inline def mma(k, step)`: two descriptors with
            # | Tx.ptx.wgmma.encode_matrix_descriptor(desc.ptr_to([0]), tile.ptr_to([row, col]),
            # | leading, stride, swizzle.value), strides in units of 16 bytes, then
            # | Tx.ptx.wgmma.mma_async.ss: A is K-major, B is N-major (transB), the very first
            # | product overwrites acc (scaleD).
            @Tx.inline
            def mma(k, step):
                """The warpgroup: 64 x 64 x 16 of tile k. Strides in the descriptors count 16 bytes."""
                # A, K-major: 8 rows of a swizzle atom are 8 * A_ROW bytes; a step of 16 stays in the row.
                Tx.ptx.wgmma.encode_matrix_descriptor(
                    a_desc.ptr_to([0]), Asmem.ptr_to([0, step * MMA_K]), 1, 8 * A_ROW // 16, A_SWIZZLE.value
                )
                # B, N-major: 8 values of k are 8 * B_ROW bytes; a step of 16 is two such atoms further.
                Tx.ptx.wgmma.encode_matrix_descriptor(
                    b_desc.ptr_to([0]), Bsmem.ptr_to([step * MMA_K, 0]), 1, 8 * B_ROW // 16, B_SWIZZLE.value
                )
                Tx.ptx.wgmma.mma_async.ss(
                    a_desc[0], b_desc[0], *[acc[i] for i in range(BN // 2)], M=BM, N=BN, K=MMA_K,
                    in_dtype=BF16, out_dtype=F32, transA=False, transB=True, scaleA=1.0, scaleB=1.0,
                    scaleD=Tx.if_then_else(k + step == 0, 0, 1),  # the first product overwrites acc
                )  # fmt: skip

            # TODO[end]

            # TODO[begin] The main loop: one thread loads tile k, all wait for it (each barrier is used
            # | once: phase 0); then wgmma: fence, the steps of 16 inside the tile, commit_group,
            # | wait_group(0). Must the 128 threads meet each time before TMA overwrites the tile,
            # | or only once (PTX ISA 9.7.15.7.2)?
            Tx.cuda.cta_sync()  # the barriers are set up
            for k in range(K_TILES):
                # A wgmma-group belongs to the warpgroup: when thread 0 has waited for the last one, all four
                # warps have read the tile that TMA now overwrites.
                with Tx.thread()[tid == 0]:
                    load(k)
                loaded.wait(k, 0)  # every thread: the bytes of tile k are there

                Tx.ptx.wgmma.fence()
                for step in Tx.unroll(tile_k // MMA_K):
                    mma(k, step)
                Tx.ptx.wgmma.commit_group()
                Tx.ptx.wgmma.wait_group(0)  # acc may be read, the tile may be overwritten
            # TODO[end]

            # TODO[begin] Write D: acc[4 * g + i] is row r (i < 2) or r + 8, column 8 * g + c + i % 2
            # | of the 64 x 64, with r = 16 * warp + lane / 4 and c = 2 * (lane % 4).
            # A thread holds rows r and r + 8 of its warp's 16, two neighbouring columns of every eight.
            row = Tx.meta_var(m_st + warp_id * 16 + lane_id // 4)
            col = Tx.meta_var(n_st + lane_id % 4 * 2)
            for g in Tx.unroll(BN // 8):
                for i in Tx.unroll(4):
                    D[row + i // 2 * 8, col + g * 8 + i % 2] = acc[g * 4 + i]
            # TODO[end]

    return compiled(kernel, "sm_90a")


# ---- the ladder: from here on B is stored transposed, as (N, K), and D has the type of the inputs ----

BK = 64  # a row of a tile is 64 16-bit numbers: 128 B, one row of the 128B swizzle
SWIZZLE = SwizzleMode.SWIZZLE_128B_ATOM
ATOM = 8 * 128 // 16  # 8 rows of 128 B in units of 16 bytes: the stride of a K-major operand
TILE_M = 128  # rows of D per CTA: 64 for each of the two warpgroups that multiply
SMS = 132  # of an H100 or H200
WAVE = 128  # a power of two: CTAs that walk along a curve together
PACKED = {BF16: "bf16x2", F16: "f16x2"}


def _shapes(M, N, K, dtype, BN):
    """Tiles along M, N and K. TMA fills in zeros and clips at the edges; its 16-byte rule is left."""
    if dtype not in PACKED:
        raise ValueError(f"dtype must be bfloat16 or float16 (got {dtype!r})")
    for name, given, unit in (("M", M, 1), ("N", N, 8), ("K", K, 8)):
        if not isinstance(given, int) or given <= 0 or given % unit:
            raise ValueError(f"{name} must be a multiple of {unit} (got {given})")
    return -(-M // TILE_M), -(-N // BN), -(-K // BK)


@Tx.inline
def describe(desc, a_ptr, b_ptr):
    """The matrix descriptors of A and B in stage 0, both K-major, 128B swizzle (PTX ISA 9.7.15.5.1.2)."""
    Tx.ptx.wgmma.encode_matrix_descriptor(desc.ptr_to([0]), a_ptr, 1, ATOM, SWIZZLE.value)
    Tx.ptx.wgmma.encode_matrix_descriptor(desc.ptr_to([1]), b_ptr, 1, ATOM, SWIZZLE.value)


@Tx.inline
def multiply(acc, desc, stage, first, BN, dtype):
    """A warpgroup: acc (64 x BN) += the K tile in `stage`; one committed group. `first` overwrites acc.

    A step of 16 along K is 32 B further in the row; a stage is TILE_M or BN rows of 128 B further.
    """
    Tx.ptx.wgmma.fence()
    for step in Tx.unroll(BK // MMA_K):
        Tx.ptx.wgmma.mma_async.ss(
            desc[0] + Tx.uint64(stage * (TILE_M * 8) + step * 2),
            desc[1] + Tx.uint64(stage * (BN * 8) + step * 2),
            *[acc[i] for i in range(BN // 2)], M=64, N=BN, K=MMA_K,
            in_dtype=dtype, out_dtype=F32, transA=False, transB=False, scaleA=1.0, scaleB=1.0,
            scaleD=Tx.if_then_else(first, 0, 1) if step == 0 else 1,
        )  # fmt: skip
    Tx.ptx.wgmma.commit_group()


def packed(acc, i, dtype):
    """acc[i] and acc[i + 1] as two 16-bit numbers in a word."""
    return Tx.ptx.cvt(PACKED[dtype], acc[i + 1], acc[i], atype="f32", rounding="rn")


@Tx.inline
def write_direct(D, acc, m_st, n_st, warp, lane, M, N, BN, dtype):
    """A warpgroup writes its 64 x BN from registers, 4 bytes a thread: 16 in a row at a time."""
    for i in Tx.unroll(BN // 4):
        row = Tx.meta_var(m_st + warp * 16 + lane // 4 + i % 2 * 8)
        col = Tx.meta_var(n_st + i // 2 * 8 + lane % 4 * 2)
        if Tx.And(row < M, col < N):
            Tx.ptx.st(D.ptr_to([row, col]), packed(acc, i * 2, dtype), space="global", ptx_type="b32")


@Tx.inline
def stage_tile(Dsmem, words, acc, wg, warp, lane, BN, dtype):
    """A warpgroup puts its 64 x BN into Dsmem[wg], in chunks of 64 columns, for TMA to store.

    stmatrix takes four 8 x 8 blocks: rows 0-7 and 8-15 of the warp's 16, of 8 columns and of the next 8;
    lane l gives the address of row l % 16 of the left (l < 16) or right pair.
    """
    for j in Tx.unroll(BN // 16):
        for i in Tx.unroll(4):
            words[i] = packed(acc, j * 8 + i * 2, dtype)
        Tx.ptx.stmatrix(
            False, 4, ".b16",
            Dsmem.ptr_to([wg, j // 4, warp * 16 + lane % 16, j % 4 * 16 + lane // 16 * 8]),
            *[words.ptr_to([i]) for i in range(4)],
        )  # fmt: skip
    Tx.ptx.fence.proxy_async("shared::cta")  # TMA will read what this thread wrote


@Tx.inline
def store_tile(D, Dsmem, wg, m_st, n_st, BN):
    """One thread: ask TMA to store the warpgroup's 64 x BN from Dsmem, clipped at the edges of D."""
    for c in Tx.unroll(BN // 64):
        n = Tx.meta_var(n_st + c * 64)
        Tx.copy_async(D[m_st : m_st + 64, n : n + 64], Dsmem[wg, c, :, :], dispatch="tma")
    Tx.ptx.cp_async.bulk.commit_group()


def tile_layout(shape, dtype):
    return tma_shared_layout(dtype, SWIZZLE, shape)


def build_gemm_ring(M, N, K, *, dtype=BF16):
    """Rung 2. Tiles of 128 x 128; a producer warp fills a ring of 4 stages of 64 columns of K, 128B-swizzled.

    Warpgroups 0 and 1 multiply 64 rows each; warp 0 of warpgroup 2 loads as long as a stage is free. full[s]:
    1 arrival (expect_tx) and the bytes of a stage; empty[s]: all 256 threads have read the stage.
    """
    BN, STAGES = 128, 4
    MT, NT, KT = _shapes(M, N, K, dtype, BN)
    # TODO[begin] STAGE_BYTES: what TMA brings into one stage.
    # > raise NotImplementedError("build_gemm_ring is not implemented yet")
    STAGE_BYTES = (TILE_M + BN) * BK * 2
    # TODO[end]

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), dtype), B: Tx.Buffer((N, K), dtype), D: Tx.Buffer((M, N), dtype)):
        with Tx.kernel():
            Tx.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
            n_tile, m_tile = Tx.cta_id([NT, MT], parent="kernel")
            wg = Tx.warpgroup_id([3], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            m_st = Tx.meta_var(m_tile * TILE_M)
            n_st = Tx.meta_var(n_tile * BN)

            pool = Tx.PoolAllocator()
            full = TMABar(pool, STAGES, "full")
            empty = MBarrier(pool, STAGES, "empty")
            pool.move_base_to(1024)
            Asmem = pool.alloc((STAGES, TILE_M, BK), dtype, layout=tile_layout((STAGES, TILE_M, BK), dtype))
            Bsmem = pool.alloc((STAGES, BN, BK), dtype, layout=tile_layout((STAGES, BN, BK), dtype))
            pool.commit()
            acc = Tx.alloc_local((BN // 2,), F32)
            desc = Tx.alloc_local((2,), "uint64")
            ring = PipelineState("ring", STAGES)

            full.init(1)
            empty.init(256)
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()

            @Tx.inline
            def load(k, stage):
                """One thread: announce the bytes of K tile k, ask TMA for them."""
                k_st = Tx.meta_var(k * BK)
                tma = Tx.meta_var({"dispatch": "tma", "mbar": full.ptr_to([stage])})
                full.arrive(stage, STAGE_BYTES)
                Tx.copy_async(Asmem[stage, :, :], A[m_st : m_st + TILE_M, k_st : k_st + BK], **tma)
                Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BN, k_st : k_st + BK], **tma)

            # TODO[begin] The roles. Warpgroup 2, warp 0, one elected thread: for each K tile wait
            # | until the stage is empty, load, next stage (PipelineState: a producer starts in phase
            # | 1). Warpgroups 0 and 1: wait until the stage is full, multiply, wait for the products,
            # | arrive on empty, next stage; at the end write_direct.
            if wg == 2:
                if warp == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        ring.init(is_producer=True)
                        for k in range(KT):
                            empty.wait(ring.stage, ring.phase)
                            load(k, ring.stage)
                            ring.move_to_next_stage()
            else:
                describe(desc, Asmem.ptr_to([0, wg * 64, 0]), Bsmem.ptr_to([0, 0, 0]))
                ring.init(is_producer=False)
                for k in range(KT):
                    full.wait(ring.stage, ring.phase)
                    multiply(acc, desc, ring.stage, k == 0, BN, dtype)
                    Tx.ptx.wgmma.wait_group(0)
                    Tx.ptx.mbarrier.arrive(empty.ptr_to([ring.stage]))
                    ring.move_to_next_stage()
                write_direct(D, acc, m_st + wg * 64, n_st, warp, lane, M, N, BN, dtype)
            # TODO[end]

    return compiled(kernel, "sm_90a")


def build_gemm_wide(M, N, K, *, dtype=BF16):
    """Rung 3. Tiles of 128 x 256: each warpgroup multiplies m64n256k16, with 128 accumulators a thread.

    For 64 x 256 products a warpgroup reads 64 + 256 rows of shared memory, for 64 x 128 it was 64 + 128:
    17 % fewer bytes a product, and a quarter fewer from L2. The producer gives registers to those who
    multiply (setmaxnreg).
    """
    BN, STAGES = 256, 4
    MT, NT, KT = _shapes(M, N, K, dtype, BN)
    # TODO[begin] STAGE_BYTES: what TMA brings into one stage.
    # > raise NotImplementedError("build_gemm_wide is not implemented yet")
    STAGE_BYTES = (TILE_M + BN) * BK * 2
    # TODO[end]

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), dtype), B: Tx.Buffer((N, K), dtype), D: Tx.Buffer((M, N), dtype)):
        with Tx.kernel():
            Tx.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
            n_tile, m_tile = Tx.cta_id([NT, MT], parent="kernel")
            wg = Tx.warpgroup_id([3], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            m_st = Tx.meta_var(m_tile * TILE_M)
            n_st = Tx.meta_var(n_tile * BN)

            pool = Tx.PoolAllocator()
            full = TMABar(pool, STAGES, "full")
            empty = MBarrier(pool, STAGES, "empty")
            pool.move_base_to(1024)
            Asmem = pool.alloc((STAGES, TILE_M, BK), dtype, layout=tile_layout((STAGES, TILE_M, BK), dtype))
            Bsmem = pool.alloc((STAGES, BN, BK), dtype, layout=tile_layout((STAGES, BN, BK), dtype))
            pool.commit()
            acc = Tx.alloc_local((BN // 2,), F32)
            desc = Tx.alloc_local((2,), "uint64")
            ring = PipelineState("ring", STAGES)

            full.init(1)
            empty.init(256)
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()

            @Tx.inline
            def load(k, stage):
                """One thread: announce the bytes of K tile k, ask TMA for them."""
                k_st = Tx.meta_var(k * BK)
                tma = Tx.meta_var({"dispatch": "tma", "mbar": full.ptr_to([stage])})
                full.arrive(stage, STAGE_BYTES)
                Tx.copy_async(Asmem[stage, :, :], A[m_st : m_st + TILE_M, k_st : k_st + BK], **tma)
                Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BN, k_st : k_st + BK], **tma)

            # TODO[begin] The roles, as in rung 2; each begins with Tx.ptx.setmaxnreg(False, 40) or
            # | (True, 232).
            if wg == 2:
                Tx.ptx.setmaxnreg(False, 40)
                if warp == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        ring.init(is_producer=True)
                        for k in range(KT):
                            empty.wait(ring.stage, ring.phase)
                            load(k, ring.stage)
                            ring.move_to_next_stage()
            else:
                Tx.ptx.setmaxnreg(True, 232)
                describe(desc, Asmem.ptr_to([0, wg * 64, 0]), Bsmem.ptr_to([0, 0, 0]))
                ring.init(is_producer=False)
                for k in range(KT):
                    full.wait(ring.stage, ring.phase)
                    multiply(acc, desc, ring.stage, k == 0, BN, dtype)
                    Tx.ptx.wgmma.wait_group(0)
                    Tx.ptx.mbarrier.arrive(empty.ptr_to([ring.stage]))
                    ring.move_to_next_stage()
                write_direct(D, acc, m_st + wg * 64, n_st, warp, lane, M, N, BN, dtype)
            # TODO[end]

    return compiled(kernel, "sm_90a")


def build_gemm_lean(M, N, K, *, dtype=BF16):
    """Rung 4. Lean barriers: a warp arrives once on empty, not 32 times; one group of wgmma stays in flight.

    wait_group(1) returns when the group before the newest has read its stage, so the tensor core has the next
    four wgmma before it is through with these. The stage that is released is the one before. On an H200 this
    is no faster than rung 3: each warpgroup multiplies while the other one waits.
    """
    BN, STAGES = 256, 4
    MT, NT, KT = _shapes(M, N, K, dtype, BN)
    # TODO[begin] STAGE_BYTES: what TMA brings into one stage.
    # > raise NotImplementedError("build_gemm_lean is not implemented yet")
    STAGE_BYTES = (TILE_M + BN) * BK * 2
    # TODO[end]

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), dtype), B: Tx.Buffer((N, K), dtype), D: Tx.Buffer((M, N), dtype)):
        with Tx.kernel():
            Tx.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
            n_tile, m_tile = Tx.cta_id([NT, MT], parent="kernel")
            wg = Tx.warpgroup_id([3], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            m_st = Tx.meta_var(m_tile * TILE_M)
            n_st = Tx.meta_var(n_tile * BN)

            pool = Tx.PoolAllocator()
            full = TMABar(pool, STAGES, "full")
            empty = MBarrier(pool, STAGES, "empty")
            pool.move_base_to(1024)
            Asmem = pool.alloc((STAGES, TILE_M, BK), dtype, layout=tile_layout((STAGES, TILE_M, BK), dtype))
            Bsmem = pool.alloc((STAGES, BN, BK), dtype, layout=tile_layout((STAGES, BN, BK), dtype))
            pool.commit()
            acc = Tx.alloc_local((BN // 2,), F32)
            desc = Tx.alloc_local((2,), "uint64")
            ring = PipelineState("ring", STAGES)

            full.init(1)
            empty.init(8)
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()

            @Tx.inline
            def load(k, stage):
                """One thread: announce the bytes of K tile k, ask TMA for them."""
                k_st = Tx.meta_var(k * BK)
                tma = Tx.meta_var({"dispatch": "tma", "mbar": full.ptr_to([stage])})
                full.arrive(stage, STAGE_BYTES)
                Tx.copy_async(Asmem[stage, :, :], A[m_st : m_st + TILE_M, k_st : k_st + BK], **tma)
                Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BN, k_st : k_st + BK], **tma)

            # TODO[begin] The roles. Who multiplies keeps one group in flight: after wait_group(1) one
            # | lane of each warp arrives for the stage before. Which stage is still unread after the
            # | loop?
            if wg == 2:
                Tx.ptx.setmaxnreg(False, 40)
                if warp == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        ring.init(is_producer=True)
                        for k in range(KT):
                            empty.wait(ring.stage, ring.phase)
                            load(k, ring.stage)
                            ring.move_to_next_stage()
            else:
                Tx.ptx.setmaxnreg(True, 232)
                describe(desc, Asmem.ptr_to([0, wg * 64, 0]), Bsmem.ptr_to([0, 0, 0]))
                ring.init(is_producer=False)
                last = Tx.local_scalar("int32")  # the stage that the group before reads
                for k in range(KT):
                    full.wait(ring.stage, ring.phase)
                    multiply(acc, desc, ring.stage, k == 0, BN, dtype)
                    Tx.ptx.wgmma.wait_group(1)
                    if k > 0:
                        with Tx.thread()[lane == 0]:
                            Tx.ptx.mbarrier.arrive(empty.ptr_to([last]))
                    last = ring.stage
                    ring.move_to_next_stage()
                Tx.ptx.wgmma.wait_group(0)  # acc may be read; nobody waits for the last stage
                write_direct(D, acc, m_st + wg * 64, n_st, warp, lane, M, N, BN, dtype)
            # TODO[end]

    return compiled(kernel, "sm_90a")


def build_gemm_store(M, N, K, *, dtype=BF16):
    """Rung 5. D goes through shared memory: stmatrix into a swizzled tile, TMA stores whole 128-byte rows.

    The tile of D takes 64 KB; the ring keeps 3 stages.
    """
    BN, STAGES = 256, 3
    MT, NT, KT = _shapes(M, N, K, dtype, BN)
    # TODO[begin] STAGE_BYTES: what TMA brings into one stage.
    # > raise NotImplementedError("build_gemm_store is not implemented yet")
    STAGE_BYTES = (TILE_M + BN) * BK * 2
    # TODO[end]

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), dtype), B: Tx.Buffer((N, K), dtype), D: Tx.Buffer((M, N), dtype)):
        with Tx.kernel():
            Tx.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
            n_tile, m_tile = Tx.cta_id([NT, MT], parent="kernel")
            wg = Tx.warpgroup_id([3], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([384], parent="cta")
            m_st = Tx.meta_var(m_tile * TILE_M)
            n_st = Tx.meta_var(n_tile * BN)

            pool = Tx.PoolAllocator()
            full = TMABar(pool, STAGES, "full")
            empty = MBarrier(pool, STAGES, "empty")
            pool.move_base_to(1024)
            Asmem = pool.alloc((STAGES, TILE_M, BK), dtype, layout=tile_layout((STAGES, TILE_M, BK), dtype))
            Bsmem = pool.alloc((STAGES, BN, BK), dtype, layout=tile_layout((STAGES, BN, BK), dtype))
            Dsmem = pool.alloc((2, BN // 64, 64, 64), dtype, layout=tile_layout((2, BN // 64, 64, 64), dtype))
            pool.commit()
            acc = Tx.alloc_local((BN // 2,), F32)
            words = Tx.alloc_local((4,), "uint32")
            desc = Tx.alloc_local((2,), "uint64")
            ring = PipelineState("ring", STAGES)

            full.init(1)
            empty.init(8)
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()

            @Tx.inline
            def load(k, stage):
                """One thread: announce the bytes of K tile k, ask TMA for them."""
                k_st = Tx.meta_var(k * BK)
                tma = Tx.meta_var({"dispatch": "tma", "mbar": full.ptr_to([stage])})
                full.arrive(stage, STAGE_BYTES)
                Tx.copy_async(Asmem[stage, :, :], A[m_st : m_st + TILE_M, k_st : k_st + BK], **tma)
                Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BN, k_st : k_st + BK], **tma)

            # TODO[begin] The roles; at the end stage_tile, a barrier of the warpgroup
            # | (Tx.cuda.warpgroup_sync(1 + wg)), one thread calls store_tile and waits until TMA has
            # | read (cp_async.bulk.wait_group).
            if wg == 2:
                Tx.ptx.setmaxnreg(False, 40)
                if warp == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        ring.init(is_producer=True)
                        for k in range(KT):
                            empty.wait(ring.stage, ring.phase)
                            load(k, ring.stage)
                            ring.move_to_next_stage()
            else:
                Tx.ptx.setmaxnreg(True, 232)
                describe(desc, Asmem.ptr_to([0, wg * 64, 0]), Bsmem.ptr_to([0, 0, 0]))
                ring.init(is_producer=False)
                last = Tx.local_scalar("int32")  # the stage that the group before reads
                for k in range(KT):
                    full.wait(ring.stage, ring.phase)
                    multiply(acc, desc, ring.stage, k == 0, BN, dtype)
                    Tx.ptx.wgmma.wait_group(1)
                    if k > 0:
                        with Tx.thread()[lane == 0]:
                            Tx.ptx.mbarrier.arrive(empty.ptr_to([last]))
                    last = ring.stage
                    ring.move_to_next_stage()
                Tx.ptx.wgmma.wait_group(0)  # acc may be read; nobody waits for the last stage
                stage_tile(Dsmem, words, acc, wg, warp, lane, BN, dtype)
                Tx.cuda.warpgroup_sync(1 + wg)  # the warpgroup's part is complete
                with Tx.thread()[tid % 128 == 0]:
                    store_tile(D, Dsmem, wg, m_st + wg * 64, n_st, BN)
                    Tx.ptx.cp_async.bulk.wait_group(0)
            # TODO[end]

    return compiled(kernel, "sm_90a")


def build_gemm_persistent(M, N, K, *, dtype=BF16, sms=SMS):
    """Rung 6. One CTA per SM computes several tiles, column by column.

    The producer runs ahead into the next tile, and TMA stores a tile while the next one is multiplied. The
    ring and its phases run on from tile to tile; Dsmem is written again when TMA has read it. `sms`: how
    many CTAs at most.
    """
    BN, STAGES = 256, 3
    MT, NT, KT = _shapes(M, N, K, dtype, BN)
    # TODO[begin] STAGE_BYTES: what TMA brings into one stage.
    # > raise NotImplementedError("build_gemm_persistent is not implemented yet")
    STAGE_BYTES = (TILE_M + BN) * BK * 2
    # TODO[end]

    CTAS = min(sms, MT * NT)

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), dtype), B: Tx.Buffer((N, K), dtype), D: Tx.Buffer((M, N), dtype)):
        with Tx.kernel():
            Tx.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
            bx = Tx.cta_id([CTAS], parent="kernel")
            wg = Tx.warpgroup_id([3], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([384], parent="cta")

            pool = Tx.PoolAllocator()
            full = TMABar(pool, STAGES, "full")
            empty = MBarrier(pool, STAGES, "empty")
            pool.move_base_to(1024)
            Asmem = pool.alloc((STAGES, TILE_M, BK), dtype, layout=tile_layout((STAGES, TILE_M, BK), dtype))
            Bsmem = pool.alloc((STAGES, BN, BK), dtype, layout=tile_layout((STAGES, BN, BK), dtype))
            Dsmem = pool.alloc((2, BN // 64, 64, 64), dtype, layout=tile_layout((2, BN // 64, 64, 64), dtype))
            pool.commit()
            acc = Tx.alloc_local((BN // 2,), F32)
            words = Tx.alloc_local((4,), "uint32")
            desc = Tx.alloc_local((2,), "uint64")
            ring = PipelineState("ring", STAGES)
            tile = Tx.local_scalar("int32")
            tile = bx

            full.init(1)
            empty.init(8)
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()

            @Tx.inline
            def load(m_st, n_st, k, stage):
                """One thread: announce the bytes of K tile k, ask TMA for them."""
                k_st = Tx.meta_var(k * BK)
                tma = Tx.meta_var({"dispatch": "tma", "mbar": full.ptr_to([stage])})
                full.arrive(stage, STAGE_BYTES)
                Tx.copy_async(Asmem[stage, :, :], A[m_st : m_st + TILE_M, k_st : k_st + BK], **tma)
                Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BN, k_st : k_st + BK], **tma)

            # TODO[begin] The roles, each in a loop over tiles: tile, tile + CTAS, ... The ring goes on
            # | from tile to tile, so the last stage of a tile must be released too. When may Dsmem be
            # | written again?
            if wg == 2:
                Tx.ptx.setmaxnreg(False, 40)
                if warp == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        ring.init(is_producer=True)
                        while tile < MT * NT:
                            for k in range(KT):
                                empty.wait(ring.stage, ring.phase)
                                load(tile % MT * TILE_M, tile // MT * BN, k, ring.stage)
                                ring.move_to_next_stage()
                            tile = tile + CTAS
            else:
                Tx.ptx.setmaxnreg(True, 232)
                describe(desc, Asmem.ptr_to([0, wg * 64, 0]), Bsmem.ptr_to([0, 0, 0]))
                ring.init(is_producer=False)
                last = Tx.local_scalar("int32")  # the stage that the group before reads
                while tile < MT * NT:
                    for k in range(KT):
                        full.wait(ring.stage, ring.phase)
                        multiply(acc, desc, ring.stage, k == 0, BN, dtype)
                        Tx.ptx.wgmma.wait_group(1)
                        if k > 0:
                            with Tx.thread()[lane == 0]:
                                Tx.ptx.mbarrier.arrive(empty.ptr_to([last]))
                        last = ring.stage
                        ring.move_to_next_stage()
                    Tx.ptx.wgmma.wait_group(0)
                    with Tx.thread()[lane == 0]:
                        Tx.ptx.mbarrier.arrive(
                            empty.ptr_to([last])
                        )  # the producer is already in the next tile
                    with Tx.thread()[tid % 128 == 0]:
                        Tx.ptx.cp_async.bulk.wait_group(0)  # TMA has read the tile before
                    Tx.cuda.warpgroup_sync(1 + wg)
                    stage_tile(Dsmem, words, acc, wg, warp, lane, BN, dtype)
                    Tx.cuda.warpgroup_sync(1 + wg)
                    with Tx.thread()[tid % 128 == 0]:
                        store_tile(D, Dsmem, wg, tile % MT * TILE_M + wg * 64, tile // MT * BN, BN)
                    tile = tile + CTAS
                with Tx.thread()[tid % 128 == 0]:
                    Tx.ptx.cp_async.bulk.wait_group(0)
            # TODO[end]

    return compiled(kernel, "sm_90a")


def build_gemm_cluster(M, N, K, *, dtype=BF16, sms=SMS):
    """Rung 7. Two CTAs, one below the other, form a cluster: each loads half of B for both (multicast).

    A CTA asks L2 for 128 rows of A and 128 of B per K tile, not for 128 and 256. full[s] of each CTA still
    gets the bytes of a whole stage; empty[s] 16 arrivals, 8 warps of each CTA, since a half goes to both.
    On an H200 this is slower than rung 6: the CTAs wait for each other, and L2 was not the limit.
    """
    BN, STAGES = 256, 3
    MT, NT, KT = _shapes(M, N, K, dtype, BN)
    # TODO[begin] STAGE_BYTES: what TMA brings into one stage.
    # > raise NotImplementedError("build_gemm_cluster is not implemented yet")
    STAGE_BYTES = (TILE_M + BN) * BK * 2
    # TODO[end]

    MT = -(-MT // 2)  # pairs of tiles, one below the other
    CLUSTERS = min(sms // 2, MT * NT)

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), dtype), B: Tx.Buffer((N, K), dtype), D: Tx.Buffer((M, N), dtype)):
        with Tx.kernel():
            Tx.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
            cbx = Tx.cta_id([2], parent="cluster")
            bx = Tx.cta_id([2 * CLUSTERS], parent="kernel")
            wg = Tx.warpgroup_id([3], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([384], parent="cta")

            pool = Tx.PoolAllocator()
            full = TMABar(pool, STAGES, "full")
            empty = MBarrier(pool, STAGES, "empty")
            pool.move_base_to(1024)
            Asmem = pool.alloc((STAGES, TILE_M, BK), dtype, layout=tile_layout((STAGES, TILE_M, BK), dtype))
            Bsmem = pool.alloc((STAGES, BN, BK), dtype, layout=tile_layout((STAGES, BN, BK), dtype))
            Dsmem = pool.alloc((2, BN // 64, 64, 64), dtype, layout=tile_layout((2, BN // 64, 64, 64), dtype))
            pool.commit()
            acc = Tx.alloc_local((BN // 2,), F32)
            words = Tx.alloc_local((4,), "uint32")
            desc = Tx.alloc_local((2,), "uint64")
            ring = PipelineState("ring", STAGES)
            tile = Tx.local_scalar("int32")
            tile = bx // 2

            full.init(1)
            empty.init(16)
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cluster_sync()

            @Tx.inline
            def load(m_st, n_st, k, stage):
                """One thread: announce the bytes of K tile k, ask TMA for them."""
                k_st = Tx.meta_var(k * BK)
                tma = Tx.meta_var({"dispatch": "tma", "mbar": full.ptr_to([stage])})
                full.arrive(stage, STAGE_BYTES)
                Tx.copy_async(Asmem[stage, :, :], A[m_st : m_st + TILE_M, k_st : k_st + BK], **tma)
                half = Tx.meta_var(cbx * (BN // 2))
                n_half = Tx.meta_var(n_st + half)
                Tx.copy_async(
                    Bsmem[stage, half : half + BN // 2, :],
                    B[n_half : n_half + BN // 2, k_st : k_st + BK], cta_mask=3, **tma,
                )  # fmt: skip

            # TODO[begin] The roles, as in rung 6. tile % MT counts pairs of rows of tiles; the CTA
            # | takes row 2 * pair + cbx. Release a stage in both CTAs: lanes 0 and 1 arrive with
            # | cta_id=lane. Nobody may leave while the other still arrives: Tx.cuda.cluster_sync() at
            # | the end.
            if wg == 2:
                Tx.ptx.setmaxnreg(False, 40)
                if warp == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        ring.init(is_producer=True)
                        while tile < MT * NT:
                            for k in range(KT):
                                empty.wait(ring.stage, ring.phase)
                                load((tile % MT * 2 + cbx) * TILE_M, tile // MT * BN, k, ring.stage)
                                ring.move_to_next_stage()
                            tile = tile + CLUSTERS
            else:
                Tx.ptx.setmaxnreg(True, 232)
                describe(desc, Asmem.ptr_to([0, wg * 64, 0]), Bsmem.ptr_to([0, 0, 0]))
                ring.init(is_producer=False)
                last = Tx.local_scalar("int32")  # the stage that the group before reads
                while tile < MT * NT:
                    for k in range(KT):
                        full.wait(ring.stage, ring.phase)
                        multiply(acc, desc, ring.stage, k == 0, BN, dtype)
                        Tx.ptx.wgmma.wait_group(1)
                        if k > 0:
                            with Tx.thread()[lane < 2]:
                                empty.arrive(last, cta_id=lane)
                        last = ring.stage
                        ring.move_to_next_stage()
                    Tx.ptx.wgmma.wait_group(0)
                    with Tx.thread()[lane < 2]:
                        empty.arrive(last, cta_id=lane)  # the producer is already in the next tile
                    with Tx.thread()[tid % 128 == 0]:
                        Tx.ptx.cp_async.bulk.wait_group(0)  # TMA has read the tile before
                    Tx.cuda.warpgroup_sync(1 + wg)
                    stage_tile(Dsmem, words, acc, wg, warp, lane, BN, dtype)
                    Tx.cuda.warpgroup_sync(1 + wg)
                    with Tx.thread()[tid % 128 == 0]:
                        store_tile(
                            D, Dsmem, wg, (tile % MT * 2 + cbx) * TILE_M + wg * 64, tile // MT * BN, BN
                        )
                    tile = tile + CLUSTERS
                with Tx.thread()[tid % 128 == 0]:
                    Tx.ptx.cp_async.bulk.wait_group(0)
            Tx.cuda.cluster_sync()  # the other CTA arrives on barriers of this one until its end
            # TODO[end]

    return compiled(kernel, "sm_90a")


def place(tile, rows, columns, group=16):
    """(row, column) of a tile: groups of `group` rows of tiles, in a group column by column."""
    first = tile // (group * columns) * group
    inside = tile % (group * columns)
    height = min(group, rows) if rows % group == 0 or rows < group else Tx.min(group, rows - first)
    return first + inside % height, inside // height


def build_gemm_blocks(M, N, K, *, dtype=BF16, sms=SMS):
    """Rung 8. Rung 6 with another order of tiles: groups of 16 rows of tiles, in a group column by column.

    The 128 tiles in work at one time are a block of 16 x 8: 2048 rows of A and 2048 of B, where rung 6 at
    8192 had 8192 and 512. Neighbours share their loads in L2, without the waiting of a cluster.
    """
    BN, STAGES = 256, 3
    MT, NT, KT = _shapes(M, N, K, dtype, BN)
    # TODO[begin] STAGE_BYTES: what TMA brings into one stage.
    # > raise NotImplementedError("build_gemm_blocks is not implemented yet")
    STAGE_BYTES = (TILE_M + BN) * BK * 2
    # TODO[end]

    CTAS = min(sms, MT * NT)

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), dtype), B: Tx.Buffer((N, K), dtype), D: Tx.Buffer((M, N), dtype)):
        with Tx.kernel():
            Tx.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
            bx = Tx.cta_id([CTAS], parent="kernel")
            wg = Tx.warpgroup_id([3], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([384], parent="cta")

            pool = Tx.PoolAllocator()
            full = TMABar(pool, STAGES, "full")
            empty = MBarrier(pool, STAGES, "empty")
            pool.move_base_to(1024)
            Asmem = pool.alloc((STAGES, TILE_M, BK), dtype, layout=tile_layout((STAGES, TILE_M, BK), dtype))
            Bsmem = pool.alloc((STAGES, BN, BK), dtype, layout=tile_layout((STAGES, BN, BK), dtype))
            Dsmem = pool.alloc((2, BN // 64, 64, 64), dtype, layout=tile_layout((2, BN // 64, 64, 64), dtype))
            pool.commit()
            acc = Tx.alloc_local((BN // 2,), F32)
            words = Tx.alloc_local((4,), "uint32")
            desc = Tx.alloc_local((2,), "uint64")
            ring = PipelineState("ring", STAGES)
            tile = Tx.local_scalar("int32")
            tile = bx

            full.init(1)
            empty.init(8)
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()

            @Tx.inline
            def load(m_st, n_st, k, stage):
                """One thread: announce the bytes of K tile k, ask TMA for them."""
                k_st = Tx.meta_var(k * BK)
                tma = Tx.meta_var({"dispatch": "tma", "mbar": full.ptr_to([stage])})
                full.arrive(stage, STAGE_BYTES)
                Tx.copy_async(Asmem[stage, :, :], A[m_st : m_st + TILE_M, k_st : k_st + BK], **tma)
                Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BN, k_st : k_st + BK], **tma)

            # TODO[begin] The roles, as in rung 6; place(tile, MT, NT) says where a tile is.
            if wg == 2:
                Tx.ptx.setmaxnreg(False, 40)
                if warp == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        ring.init(is_producer=True)
                        while tile < MT * NT:
                            m, n = Tx.meta_var(place(tile, MT, NT))
                            for k in range(KT):
                                empty.wait(ring.stage, ring.phase)
                                load(m * TILE_M, n * BN, k, ring.stage)
                                ring.move_to_next_stage()
                            tile = tile + CTAS
            else:
                Tx.ptx.setmaxnreg(True, 232)
                describe(desc, Asmem.ptr_to([0, wg * 64, 0]), Bsmem.ptr_to([0, 0, 0]))
                ring.init(is_producer=False)
                last = Tx.local_scalar("int32")  # the stage that the group before reads
                while tile < MT * NT:
                    for k in range(KT):
                        full.wait(ring.stage, ring.phase)
                        multiply(acc, desc, ring.stage, k == 0, BN, dtype)
                        Tx.ptx.wgmma.wait_group(1)
                        if k > 0:
                            with Tx.thread()[lane == 0]:
                                Tx.ptx.mbarrier.arrive(empty.ptr_to([last]))
                        last = ring.stage
                        ring.move_to_next_stage()
                    Tx.ptx.wgmma.wait_group(0)
                    with Tx.thread()[lane == 0]:
                        Tx.ptx.mbarrier.arrive(
                            empty.ptr_to([last])
                        )  # the producer is already in the next tile
                    with Tx.thread()[tid % 128 == 0]:
                        Tx.ptx.cp_async.bulk.wait_group(0)  # TMA has read the tile before
                    Tx.cuda.warpgroup_sync(1 + wg)
                    stage_tile(Dsmem, words, acc, wg, warp, lane, BN, dtype)
                    Tx.cuda.warpgroup_sync(1 + wg)
                    with Tx.thread()[tid % 128 == 0]:
                        m, n = Tx.meta_var(place(tile, MT, NT))
                        store_tile(D, Dsmem, wg, m * TILE_M + wg * 64, n * BN, BN)
                    tile = tile + CTAS
                with Tx.thread()[tid % 128 == 0]:
                    Tx.ptx.cp_async.bulk.wait_group(0)
            # TODO[end]

    return compiled(kernel, "sm_90a")


def build_gemm_curve(M, N, K, *, dtype=BF16, sms=WAVE):
    """Rung 9. The tiles along a Hilbert curve, 128 CTAs: from each block of tiles to one beside it.

    Pairs of tiles (256 x 256) are the points of the curve. One wave is 128 tiles, 8 x 8 pairs, and so is the
    part of the curve that it covers. Grids that are no power of two and square keep the groups of rung 8.
    """
    BN, STAGES = 256, 3
    MT, NT, KT = _shapes(M, N, K, dtype, BN)
    # TODO[begin] STAGE_BYTES: what TMA brings into one stage.
    # > raise NotImplementedError("build_gemm_curve is not implemented yet")
    STAGE_BYTES = (TILE_M + BN) * BK * 2
    # TODO[end]

    CTAS = min(sms, MT * NT)
    LEVELS = (NT - 1).bit_length()
    CURVE = MT == 2 * NT and NT == 1 << LEVELS

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), dtype), B: Tx.Buffer((N, K), dtype), D: Tx.Buffer((M, N), dtype)):
        with Tx.kernel():
            Tx.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
            bx = Tx.cta_id([CTAS], parent="kernel")
            wg = Tx.warpgroup_id([3], parent="cta")
            warp = Tx.warp_id([4], parent="warpgroup")
            lane = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([384], parent="cta")

            pool = Tx.PoolAllocator()
            full = TMABar(pool, STAGES, "full")
            empty = MBarrier(pool, STAGES, "empty")
            pool.move_base_to(1024)
            Asmem = pool.alloc((STAGES, TILE_M, BK), dtype, layout=tile_layout((STAGES, TILE_M, BK), dtype))
            Bsmem = pool.alloc((STAGES, BN, BK), dtype, layout=tile_layout((STAGES, BN, BK), dtype))
            Dsmem = pool.alloc((2, BN // 64, 64, 64), dtype, layout=tile_layout((2, BN // 64, 64, 64), dtype))
            pool.commit()
            acc = Tx.alloc_local((BN // 2,), F32)
            words = Tx.alloc_local((4,), "uint32")
            desc = Tx.alloc_local((2,), "uint64")
            ring = PipelineState("ring", STAGES)
            tile = Tx.local_scalar("int32")
            tile = bx
            m = Tx.local_scalar("int32")
            n = Tx.local_scalar("int32")
            turned = Tx.local_scalar("int32")

            full.init(1)
            empty.init(8)
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()

            @Tx.inline
            def load(m_st, n_st, k, stage):
                """One thread: announce the bytes of K tile k, ask TMA for them."""
                k_st = Tx.meta_var(k * BK)
                tma = Tx.meta_var({"dispatch": "tma", "mbar": full.ptr_to([stage])})
                full.arrive(stage, STAGE_BYTES)
                Tx.copy_async(Asmem[stage, :, :], A[m_st : m_st + TILE_M, k_st : k_st + BK], **tma)
                Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BN, k_st : k_st + BK], **tma)

            @Tx.inline
            def find():
                """m, n: the place of `tile` on the curve, from the low bits up; two bits choose a
                quadrant.
                """
                if not CURVE:
                    place_m, place_n = Tx.meta_var(place(tile, MT, NT))
                    m = place_m
                    n = place_n
                else:
                    m = 0
                    n = 0
                    for level in Tx.unroll(LEVELS):
                        down = Tx.meta_var(tile >> (2 * level + 2) & 1)
                        right = Tx.meta_var((tile >> (2 * level + 1) ^ down) & 1)
                        if right == 0:  # turn what has been walked so far
                            if down == 1:
                                m = (1 << level) - 1 - m
                                n = (1 << level) - 1 - n
                            turned = m
                            m = n
                            n = turned
                        m = m + (1 << level) * down
                        n = n + (1 << level) * right
                    m = m * 2 + tile % 2

            # TODO[begin] The roles, as in rung 8; call find() at the start of each tile, m and n are
            # | its place.
            if wg == 2:
                Tx.ptx.setmaxnreg(False, 40)
                if warp == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        ring.init(is_producer=True)
                        while tile < MT * NT:
                            find()
                            for k in range(KT):
                                empty.wait(ring.stage, ring.phase)
                                load(m * TILE_M, n * BN, k, ring.stage)
                                ring.move_to_next_stage()
                            tile = tile + CTAS
            else:
                Tx.ptx.setmaxnreg(True, 232)
                describe(desc, Asmem.ptr_to([0, wg * 64, 0]), Bsmem.ptr_to([0, 0, 0]))
                ring.init(is_producer=False)
                last = Tx.local_scalar("int32")  # the stage that the group before reads
                while tile < MT * NT:
                    for k in range(KT):
                        full.wait(ring.stage, ring.phase)
                        multiply(acc, desc, ring.stage, k == 0, BN, dtype)
                        Tx.ptx.wgmma.wait_group(1)
                        if k > 0:
                            with Tx.thread()[lane == 0]:
                                Tx.ptx.mbarrier.arrive(empty.ptr_to([last]))
                        last = ring.stage
                        ring.move_to_next_stage()
                    Tx.ptx.wgmma.wait_group(0)
                    with Tx.thread()[lane == 0]:
                        Tx.ptx.mbarrier.arrive(
                            empty.ptr_to([last])
                        )  # the producer is already in the next tile
                    with Tx.thread()[tid % 128 == 0]:
                        Tx.ptx.cp_async.bulk.wait_group(0)  # TMA has read the tile before
                    Tx.cuda.warpgroup_sync(1 + wg)
                    stage_tile(Dsmem, words, acc, wg, warp, lane, BN, dtype)
                    Tx.cuda.warpgroup_sync(1 + wg)
                    with Tx.thread()[tid % 128 == 0]:
                        find()
                        store_tile(D, Dsmem, wg, m * TILE_M + wg * 64, n * BN, BN)
                    tile = tile + CTAS
                with Tx.thread()[tid % 128 == 0]:
                    Tx.ptx.cp_async.bulk.wait_group(0)
            # TODO[end]

    return compiled(kernel, "sm_90a")
