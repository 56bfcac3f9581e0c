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
    # TODO: K_TILES: in how many steps the kernel walks along K. (Then delete the `raise`.)
    raise NotImplementedError("build_gemm_m64n64 is not implemented yet")
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

            # TODO: Write `@Tx.inline def load(k)`, for one thread: loaded.arrive(k, TILE_BYTES)
            #       announces the bytes; two Tx.copy_async with dispatch="tma" and
            #       mbar=loaded.ptr_to([k]) fetch columns k*tile_k .. of A's rows m_st .., and rows
            #       k*tile_k .. of B's columns n_st ..

            # TODO: Write `@Tx.inline def mma(k, step)`: two descriptors with
            #       Tx.ptx.wgmma.encode_matrix_descriptor(desc.ptr_to([0]), tile.ptr_to([row, col]),
            #       leading, stride, swizzle.value), strides in units of 16 bytes, then
            #       Tx.ptx.wgmma.mma_async.ss: A is K-major, B is N-major (transB), the very first
            #       product overwrites acc (scaleD).

            # TODO: The main loop: one thread loads tile k, all wait for it (each barrier is used once:
            #       phase 0); then wgmma: fence, the steps of 16 inside the tile, commit_group,
            #       wait_group(0). Where must the 128 threads meet, so that TMA never writes a tile
            #       that a warp's wgmma still reads?

            # TODO: Write D: acc[4 * g + i] is row r (i < 2) or r + 8, column 8 * g + c + i % 2 of the
            #       64 x 64, with r = 16 * warp + lane / 4 and c = 2 * (lane % 4).

    return compiled(kernel, "sm_90a")
