"""GEMM on Hopper (sm_90a): TMA into shared memory, wgmma from there, accumulators in registers.

`build_gemm_m64n64(M, N, K)` gives a function: D = function(A, B) = A @ B with A (M, K) and B (K, N) bfloat16,
D (M, N) float32, all row-major: A is K-major, B is N-major. Shapes that do not fit raise ValueError.
"""

# ruff: noqa: F821, F841
# (names that only a solution defines or uses)

from tirxlab import SwizzleMode, TMABar, Tx, tma_shared_layout
from tirxlab.functions import compiled

BF16, F32 = "bfloat16", "float32"
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

            # TODO[begin] The main loop: one thread loads tile k, all wait for it (each barrier is used once:
            # | phase 0); then wgmma: fence, the steps of 16 inside the tile, commit_group,
            # | wait_group(0). Where must the 128 threads meet, so that TMA never writes a tile
            # | that a warp's wgmma still reads?
            for k in range(K_TILES):
                # The barriers are set up; every warp's wgmma has read the tile that TMA now overwrites.
                Tx.cuda.cta_sync()
                with Tx.thread()[tid == 0]:
                    load(k)
                loaded.wait(k, 0)  # every thread: the bytes of tile k are there

                Tx.ptx.wgmma.fence()
                for step in Tx.unroll(tile_k // MMA_K):
                    mma(k, step)
                Tx.ptx.wgmma.commit_group()
                Tx.ptx.wgmma.wait_group(0)  # acc may be read, the tile may be overwritten
            # TODO[end]

            # TODO[begin] Write D: acc[4 * g + i] is row r (i < 2) or r + 8, column 8 * g + c + i % 2 of the
            # | 64 x 64, with r = 16 * warp + lane / 4 and c = 2 * (lane % 4).
            # A thread holds rows r and r + 8 of its warp's 16, two neighbouring columns of every eight.
            row = Tx.meta_var(m_st + warp_id * 16 + lane_id // 4)
            col = Tx.meta_var(n_st + lane_id % 4 * 2)
            for g in Tx.unroll(BN // 8):
                for i in Tx.unroll(4):
                    D[row + i // 2 * 8, col + g * 8 + i % 2] = acc[g * 4 + i]
            # TODO[end]

    return compiled(kernel, "sm_90a")
