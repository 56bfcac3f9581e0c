"""GEMM on Ampere (sm_80): cp.async into shared memory, mma.sync on registers.

`build_gemm_pipelined(M, N, K)` gives a function: D = function(A, B_T) = A @ B_T.T with A (M, K) and B_T
(N, K) bfloat16, D (M, N) float32, all row-major. Shapes that do not fit raise ValueError.
"""

# ruff: noqa: F821, F841
# (names that only a solution defines or uses)

from tirxlab import Tx
from tirxlab.functions import compiled

BF16, U32, F32 = "bfloat16", "uint32", "float32"
BM, BN, BK = 64, 64, 16  # one CTA computes BM x BN of D, in steps of BK
WARPS = 4  # warp w computes rows 16 w .. 16 w + 15 of the tile
STAGES = 2
WORDS = BK // 2  # a row of a staged tile: BK bf16, two to a 32-bit word
N_FRAGS = BN // 8  # mma.sync m16n8k16 tiles side by side in a warp's 16 x 64


def build_gemm_pipelined(M, N, K, *, arch="sm_80"):
    """The kernel for one problem size. What is built for "sm_80" runs on every later GPU too."""
    for name, given, unit in (("M", M, BM), ("N", N, BN), ("K", K, BK)):
        if not isinstance(given, int) or given <= 0 or given % unit:
            raise ValueError(f"{name} must be a multiple of {unit} (got {given})")
    # TODO[begin] K_TILES: in how many steps the kernel walks along K. (Then delete the `raise`.) Later, for
    # | speed: UNROLL, how many steps stand in a row without a loop, and ROUNDS, how often the main
    # | loop then runs.
    # > raise NotImplementedError("build_gemm_pipelined is not implemented yet")
    K_TILES = K // BK
    UNROLL = 4 if K >= 2048 else 2  # measured on an H200; stages become constants
    ROUNDS = max(0, K_TILES - STAGES) // UNROLL
    # TODO[end]

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), BF16), B_T: Tx.Buffer((N, K), BF16), D: Tx.Buffer((M, N), F32)):
        with Tx.kernel():
            n_tile, m_tile = Tx.cta_id([N // BN, M // BM], parent="kernel")
            warp_id = Tx.warp_id([WARPS], parent="cta")
            lane_id = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([32 * WARPS], parent="cta")
            m_st = Tx.meta_var(m_tile * BM)
            n_st = Tx.meta_var(n_tile * BN)

            pool = Tx.PoolAllocator()
            # B first: the compiler then reads all B fragments with one address and constant offsets.
            Bsmem = pool.alloc((STAGES, BN, WORDS), U32, align=128)
            Asmem = pool.alloc((STAGES, BM, WORDS), U32, align=128)
            pool.commit()
            a_frag = Tx.alloc_local((4,), U32)
            b_frag = Tx.alloc_local((N_FRAGS, 2), U32)
            acc = Tx.alloc_local((N_FRAGS, 4), F32)

            # TODO[begin] Write `@Tx.inline def prefetch(stage, k)`: every thread copies 16 bytes of K tile k
            # | of A and 16 of B_T to `stage` with Tx.ptx.cp_async(to, from, 16), where both are
            # | pointers (buf.ptr_to([...])), and closes the group (Tx.ptx.cp_async.commit_group).
            # | 128 threads x 16 B = one stage of one matrix: thread t takes half of row t // 2.
            @Tx.inline
            def prefetch(stage, k):
                """Every thread copies 16 bytes (8 bf16) of A and of B: thread t half of row t // 2."""
                row = Tx.meta_var(tid // 2)
                half = Tx.meta_var(tid % 2)
                k_st = Tx.meta_var(k * BK + half * 8)
                Tx.ptx.cp_async(Asmem.ptr_to([stage, row, half * 4]), A.ptr_to([m_st + row, k_st]), 16)
                Tx.ptx.cp_async(Bsmem.ptr_to([stage, row, half * 4]), B_T.ptr_to([n_st + row, k_st]), 16)
                Tx.ptx.cp_async.commit_group()

            # TODO[end]

            for i in Tx.unroll(N_FRAGS):
                for j in Tx.unroll(4):
                    acc[i, j] = Tx.float32(0)
            # TODO[begin] Fill the ring: prefetch the first tiles, one per stage (there may be fewer tiles).
            for s in Tx.unroll(min(STAGES, K_TILES)):
                prefetch(s, s)
            # TODO[end]

            group = Tx.meta_var(lane_id // 4)  # the fragment's row (A, D) or column (B)
            pair = Tx.meta_var(lane_id % 4)  # which 32-bit word of four

            # TODO[begin] The main loop over K tiles. Wait until tile k is there: wait_group(n) returns when
            # | at most the n youngest groups of this thread are pending; think of the last tile.
            # | The other threads' copies need a barrier. Load the fragments, 32 bits at a time:
            # | a_frag[i] is rows group and group + 8, words pair and pair + 4 of the warp's 16
            # | rows; b_frag[n, i] column n * 8 + group. Eight Tx.ptx.mma("m16n8k16", ...), each
            # | operand a list of pointers. Then a barrier (why?) and the next prefetch, if any.
            # | Once it is right, make one step an `@Tx.inline def step(k)` and unroll the loop by UNROLL:
            # | ROUNDS rounds of UNROLL steps, then the steps that are left.
            @Tx.inline
            def step(k):
                stage = Tx.meta_var(k % STAGES)
                # In the steady state the youngest group may still be in flight. The last tile is itself the
                # youngest: the same count would let it be in flight too.
                if k < K_TILES - 1:
                    Tx.ptx.cp_async.wait_group(STAGES - 1)
                else:
                    Tx.ptx.cp_async.wait_group(0)
                Tx.cuda.cta_sync()  # a thread waits for its own copies only; the others' are there now too

                for i in Tx.unroll(4):
                    a_frag[i] = Asmem[stage, warp_id * 16 + group + i % 2 * 8, pair + i // 2 * 4]
                for n in Tx.unroll(N_FRAGS):
                    for i in Tx.unroll(2):
                        b_frag[n, i] = Bsmem[stage, n * 8 + group, pair + i * 4]
                for n in Tx.unroll(N_FRAGS):
                    Tx.ptx.mma(
                        "m16n8k16", "row", "col", F32, BF16, BF16, F32,
                        [acc.ptr_to([n, i]) for i in range(4)],
                        [a_frag.ptr_to([i]) for i in range(4)],
                        [b_frag.ptr_to([n, i]) for i in range(2)],
                        [acc.ptr_to([n, i]) for i in range(4)],
                    )  # fmt: skip

                Tx.cuda.cta_sync()  # every warp has read this stage: now it may be overwritten
                if k + STAGES < K_TILES:
                    prefetch(stage, k + STAGES)

            for i in range(ROUNDS):  # never the last tiles: no branches
                for j in Tx.unroll(UNROLL):
                    step(i * UNROLL + j)
            for k in Tx.unroll(ROUNDS * UNROLL, K_TILES):
                step(k)
            # TODO[end]

            # TODO[begin] Write D: acc[n, i] is row group (i < 2) or group + 8, column
            # | n * 8 + 2 * pair + i % 2 of the warp's 16 x 64.
            for n in Tx.unroll(N_FRAGS):
                for i in Tx.unroll(4):
                    row = Tx.meta_var(m_st + warp_id * 16 + group + i // 2 * 8)
                    D[row, n_st + n * 8 + pair * 2 + i % 2] = acc[n, i]
            # TODO[end]

    return compiled(kernel, arch)
