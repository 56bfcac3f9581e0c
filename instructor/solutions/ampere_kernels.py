"""GEMM on Ampere (sm_80): cp.async into shared memory, mma.sync on registers.

Rung 1, `build_gemm_pipelined(M, N, K)`, gives a function: D = function(A, B_T) = A @ B_T.T with A (M, K) and
B_T (N, K) bfloat16, D (M, N) float32, all row-major.

Rungs 2 to 9, `build_gemm_ldmatrix` to `build_gemm_blocks`, compute the same with D in float32 or bfloat16
(`out`), each one idea away from another. M is any size, N and K are multiples of 8.

Shapes that do not fit raise ValueError. tracks/ampere/NOTES.md has what each rung brought on a chip.
"""

# ruff: noqa: F821, F823, F841
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
    # TODO[begin] K_TILES: in how many steps the kernel walks along K. (Then delete the `raise`.)
    # | Later, for speed: UNROLL, how many steps stand in a row without a loop, and ROUNDS, how often
    # | the main loop then runs.
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

            # TODO[begin] Write `@Tx.inline def prefetch(stage, k)`: every thread copies 16 bytes of K
            # | tile k of A and 16 of B_T to `stage` with Tx.ptx.cp_async(to, from, 16), where both are
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
            # TODO[begin] Fill the ring: prefetch the first tiles, one per stage (there may be fewer
            # | tiles).
            for s in Tx.unroll(min(STAGES, K_TILES)):
                prefetch(s, s)
            # TODO[end]

            group = Tx.meta_var(lane_id // 4)  # the fragment's row (A, D) or column (B)
            pair = Tx.meta_var(lane_id % 4)  # which 32-bit word of four

            # TODO[begin] The main loop over K tiles. Wait until tile k is there: wait_group(n) returns
            # | when at most the n youngest groups of this thread are pending; think of the last tile.
            # | The other threads' copies need a barrier. Load the fragments, 32 bits at a time:
            # | a_frag[i] is rows group and group + 8, words pair and pair + 4 of the warp's 16
            # | rows; b_frag[n, i] column n * 8 + group. Eight Tx.ptx.mma("m16n8k16", ...), each
            # | operand a list of pointers. Then a barrier (why?) and the next prefetch, if any.
            # | Once it is right, make one step an `@Tx.inline def step(k)` and unroll the loop by
            # | UNROLL: ROUNDS rounds of UNROLL steps, then the steps that are left.
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


# ---- the ladder: D is float32 or bfloat16 (`out`), M and K may be uneven, K is padded with zeros ----


def _shapes(M, N, K, out, BM, BN, BK):
    """Tiles along M, N and K. Rows beyond the edge are copied from the first rows and never written."""
    if out not in (BF16, F32):
        raise ValueError(f"out must be float32 or bfloat16 (got {out!r})")
    for name, given, unit in (("M", M, 1), ("N", N, 8), ("K", K, 8)):
        if not isinstance(given, int) or given <= 0 or given % unit:
            raise ValueError(f"{name} must be a multiple of {unit} (got {given})")
    return -(-M // BM), -(-N // BN), -(-K // BK)


def _existing(row, rows, limit):
    """A row that exists: those beyond `limit` go on at the first. If all were the last row instead, every CTA
    at the edge would ask L2 for the same line, over and over, and twice the time would go by.
    """
    if limit % rows == 0:
        return row
    if limit < rows:
        return Tx.min(row, limit - 1)
    return Tx.if_then_else(row < limit, row, row - limit)


@Tx.inline
def copy_tile(smem, source, stage, first, k, tid, rows, limit, K, threads, BK, column, part=0, parts=1):
    """All threads copy `rows` x BK of `source`, 16 bytes each, from row `first` and K tile k on, to a stage.

    `column(row, chunk)` says where 8 numbers go in their row. Numbers beyond K are zeros.
    """
    for i in Tx.unroll(rows * BK // 8 // threads // parts):
        piece = Tx.meta_var(part * (rows * BK // 8 // threads // parts) + i)
        row = Tx.meta_var(tid // (BK // 8) + piece * (threads * 8 // BK))
        chunk = Tx.meta_var(tid % (BK // 8))
        src = Tx.meta_var(_existing(first + row, rows, limit))
        k_st = Tx.meta_var(k * BK + chunk * 8)
        to = Tx.meta_var(smem.ptr_to([stage, row, column(row, chunk)]))
        if K % BK == 0:
            Tx.ptx.cp_async(to, source.ptr_to([src, k_st]), 16)
        else:
            inside = Tx.meta_var(k_st < K)
            Tx.ptx.cp_async(
                to,
                source.ptr_to([src, Tx.if_then_else(inside, k_st, 0)]),
                16,
                predicate=inside,
                fill_mode="zero",
            )


@Tx.inline
def load_fragments(a_frag, b_frag, buf, Asmem, Bsmem, stage, a_row, b_row, step, lane, MF, NF, column):
    """A warp: MF x 16 rows of A and NF x 8 columns of B, 16 values of K, by ldmatrix into fragment set `buf`.

    One ldmatrix.x4 gives four 8 x 8 blocks; lane l supplies the address of row l % 8 of block l // 8. A: rows
    0-7 and 8-15 of the left 8 of K, then of the right 8. B: left and right 8 of K of 8 columns, then of 8
    more.
    """
    for i in Tx.unroll(MF):
        row = Tx.meta_var(a_row + i * 16 + lane % 16)
        Tx.ptx.ldmatrix(
            False, 4, ".b16", Asmem.ptr_to([stage, row, column(row, step * 2 + lane // 16)]),
            *[a_frag.ptr_to([buf, i, r]) for r in range(4)],
        )  # fmt: skip
    for j in Tx.unroll(NF // 2):
        row = Tx.meta_var(b_row + j * 16 + lane // 16 * 8 + lane % 8)
        Tx.ptx.ldmatrix(
            False, 4, ".b16", Bsmem.ptr_to([stage, row, column(row, step * 2 + lane // 8 % 2)]),
            *[b_frag.ptr_to([buf, j * 2 + r // 2, r % 2]) for r in range(4)],
        )  # fmt: skip


@Tx.inline
def multiply(acc, a_frag, b_frag, buf, MF, NF):
    """A warp: acc += MF x 16 rows times NF x 8 columns, 16 values of K."""
    for i in Tx.unroll(MF):
        for j in Tx.unroll(NF):
            Tx.ptx.mma(
                "m16n8k16", "row", "col", F32, BF16, BF16, F32,
                [acc.ptr_to([i, j, r]) for r in range(4)],
                [a_frag.ptr_to([buf, i, r]) for r in range(4)],
                [b_frag.ptr_to([buf, j, r]) for r in range(2)],
                [acc.ptr_to([i, j, r]) for r in range(4)],
            )  # fmt: skip


@Tx.inline
def clear(acc, MF, NF):
    for i in Tx.unroll(MF):
        for j in Tx.unroll(NF):
            for r in Tx.unroll(4):
                acc[i, j, r] = Tx.float32(0)


def packed(acc, i, j, r):
    """Two neighbouring numbers of D as bf16 in a word."""
    return Tx.ptx.cvt("bf16x2", acc[i, j, r + 1], acc[i, j, r], atype="f32", rounding="rn")


@Tx.inline
def write_direct(D, acc, m_st, n_st, lane, M, N, MF, NF, out):
    """A warp writes its part of D from registers: two neighbours in a row at a time."""
    for i in Tx.unroll(MF):
        for j in Tx.unroll(NF):
            for r in Tx.unroll(2):
                row = Tx.meta_var(m_st + i * 16 + lane // 4 + r * 8)
                col = Tx.meta_var(n_st + j * 8 + lane % 4 * 2)
                if Tx.And(row < M, col < N):
                    if out == F32:
                        Tx.ptx.st(
                            D.ptr_to([row, col]), acc[i, j, r * 2], acc[i, j, r * 2 + 1],
                            space="global", vec="v2", ptx_type="f32",
                        )  # fmt: skip
                    else:
                        Tx.ptx.st(
                            D.ptr_to([row, col]), packed(acc, i, j, r * 2), space="global", ptx_type="b32"
                        )


def plain(row, chunk):
    """Column of a row where 8 numbers go: where they are in global memory."""
    return chunk * 8


def swizzled(row, chunk):
    """.. exchanged within the row, so that 8 rows of one column of chunks lie in 8 different groups of
    banks.
    """
    return (chunk ^ (row % 8)) * 8


def build_gemm_ldmatrix(M, N, K, *, out=F32, arch="sm_80"):
    """Rung 2. Fragments by ldmatrix: 5 instructions a step instead of 20 loads of 32 bits."""
    BM, BN, BK, STAGES, WARPS = 64, 64, 16, 2, 4
    # TODO[begin] MF, NF: a warp's part of the tile in units of 16 rows and 8 columns.
    # > raise NotImplementedError("build_gemm_ldmatrix is not implemented yet")
    MF, NF = 1, 8
    # TODO[end]
    THREADS = 32 * WARPS
    column = plain
    MT, NT, KT = _shapes(M, N, K, out, BM, BN, BK)

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), BF16), B_T: Tx.Buffer((N, K), BF16), D: Tx.Buffer((M, N), out)):
        with Tx.kernel():
            n_tile, m_tile = Tx.cta_id([NT, MT], parent="kernel")
            warp = Tx.warp_id([WARPS], parent="cta")
            lane = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([THREADS], parent="cta")
            m_st = Tx.meta_var(m_tile * BM)
            n_st = Tx.meta_var(n_tile * BN)
            a_row = Tx.meta_var(warp * 16)  # the warp's part of the tile
            b_row = Tx.meta_var(0)

            pool = Tx.PoolAllocator()
            Asmem = pool.alloc((STAGES, BM, BK), BF16, align=128)
            Bsmem = pool.alloc((STAGES, BN, BK), BF16, align=128)
            pool.commit()
            a_frag = Tx.alloc_local((1, MF, 4), U32)
            b_frag = Tx.alloc_local((1, NF, 2), U32)
            acc = Tx.alloc_local((MF, NF, 4), F32)

            @Tx.inline
            def prefetch(stage, k):
                """K tile k into a stage, if there is one; a group is closed in any case, so that counts
                hold.
                """
                if k < KT:
                    copy_tile(Asmem, A, stage, m_st, k, tid, BM, M, K, THREADS, BK, column)
                    copy_tile(Bsmem, B_T, stage, n_st, k, tid, BN, N, K, THREADS, BK, column)
                Tx.ptx.cp_async.commit_group()

            # TODO[begin] The main loop, as in rung 1: wait, barrier, per step load_fragments and
            # | multiply, barrier, prefetch into the stage that is free; write_direct at the end.
            clear(acc, MF, NF)
            for s in Tx.unroll(STAGES):
                prefetch(s, s)
            for k in range(KT):
                Tx.ptx.cp_async.wait_group(STAGES - 1)
                Tx.cuda.cta_sync()  # tile k of all threads is there
                for step in Tx.unroll(BK // 16):
                    load_fragments(
                        a_frag, b_frag, 0, Asmem, Bsmem, k % STAGES, a_row, b_row, step, lane, MF, NF, column
                    )
                    multiply(acc, a_frag, b_frag, 0, MF, NF)
                Tx.cuda.cta_sync()  # all warps have read this stage
                prefetch(k % STAGES, k + STAGES)
            write_direct(D, acc, m_st + a_row, n_st + b_row, lane, M, N, MF, NF, out)
            # TODO[end]

    return compiled(kernel, arch)


def build_gemm_swizzle(M, N, K, *, out=F32, arch="sm_80"):
    """Rung 3. Tiles of 64 columns of K: rows of 128 B, their 16-byte chunks exchanged by XOR; 3 stages.

    ldmatrix reads 8 rows in one column of chunks. In rows of 32 B two of them share each bank; in rows of
    128 B all eight would, but chunk c of row r lies at c ^ (r % 8). Four steps for two barriers, not one.
    """
    BM, BN, BK, STAGES, WARPS = 64, 64, 64, 3, 4
    # TODO[begin] MF, NF: a warp's part of the tile in units of 16 rows and 8 columns.
    # > raise NotImplementedError("build_gemm_swizzle is not implemented yet")
    MF, NF = 1, 8
    # TODO[end]
    THREADS = 32 * WARPS
    column = swizzled
    MT, NT, KT = _shapes(M, N, K, out, BM, BN, BK)

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), BF16), B_T: Tx.Buffer((N, K), BF16), D: Tx.Buffer((M, N), out)):
        with Tx.kernel():
            n_tile, m_tile = Tx.cta_id([NT, MT], parent="kernel")
            warp = Tx.warp_id([WARPS], parent="cta")
            lane = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([THREADS], parent="cta")
            m_st = Tx.meta_var(m_tile * BM)
            n_st = Tx.meta_var(n_tile * BN)
            a_row = Tx.meta_var(warp * 16)  # the warp's part of the tile
            b_row = Tx.meta_var(0)

            pool = Tx.PoolAllocator()
            Asmem = pool.alloc((STAGES, BM, BK), BF16, align=128)
            Bsmem = pool.alloc((STAGES, BN, BK), BF16, align=128)
            pool.commit()
            a_frag = Tx.alloc_local((1, MF, 4), U32)
            b_frag = Tx.alloc_local((1, NF, 2), U32)
            acc = Tx.alloc_local((MF, NF, 4), F32)

            @Tx.inline
            def prefetch(stage, k):
                """K tile k into a stage, if there is one; a group is closed in any case, so that counts
                hold.
                """
                if k < KT:
                    copy_tile(Asmem, A, stage, m_st, k, tid, BM, M, K, THREADS, BK, column)
                    copy_tile(Bsmem, B_T, stage, n_st, k, tid, BN, N, K, THREADS, BK, column)
                Tx.ptx.cp_async.commit_group()

            # TODO[begin] The main loop, as in rung 2.
            clear(acc, MF, NF)
            for s in Tx.unroll(STAGES):
                prefetch(s, s)
            for k in range(KT):
                Tx.ptx.cp_async.wait_group(STAGES - 1)
                Tx.cuda.cta_sync()  # tile k of all threads is there
                for step in Tx.unroll(BK // 16):
                    load_fragments(
                        a_frag, b_frag, 0, Asmem, Bsmem, k % STAGES, a_row, b_row, step, lane, MF, NF, column
                    )
                    multiply(acc, a_frag, b_frag, 0, MF, NF)
                Tx.cuda.cta_sync()  # all warps have read this stage
                prefetch(k % STAGES, k + STAGES)
            write_direct(D, acc, m_st + a_row, n_st + b_row, lane, M, N, MF, NF, out)
            # TODO[end]

    return compiled(kernel, arch)


def build_gemm_wide(M, N, K, *, out=F32, arch="sm_80"):
    """Rung 4. Tiles of 128 x 256 for 8 warps of 64 x 64: a value read from shared memory meets 64 others.

    A step of 16 costs a warp 8 ldmatrix.x4 for 32 mma; in rung 3 it was 5 for 8.
    """
    BM, BN, BK, STAGES, WARPS = 128, 256, 64, 3, 8
    # TODO[begin] MF, NF: a warp's part of the tile in units of 16 rows and 8 columns.
    # > raise NotImplementedError("build_gemm_wide is not implemented yet")
    MF, NF = 4, 8
    # TODO[end]
    THREADS = 32 * WARPS
    column = swizzled
    MT, NT, KT = _shapes(M, N, K, out, BM, BN, BK)

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), BF16), B_T: Tx.Buffer((N, K), BF16), D: Tx.Buffer((M, N), out)):
        with Tx.kernel():
            n_tile, m_tile = Tx.cta_id([NT, MT], parent="kernel")
            warp = Tx.warp_id([WARPS], parent="cta")
            lane = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([THREADS], parent="cta")
            m_st = Tx.meta_var(m_tile * BM)
            n_st = Tx.meta_var(n_tile * BN)
            a_row = Tx.meta_var(warp % 2 * (MF * 16))  # the warp's part of the tile
            b_row = Tx.meta_var(warp // 2 * (NF * 8))

            pool = Tx.PoolAllocator()
            Asmem = pool.alloc((STAGES, BM, BK), BF16, align=128)
            Bsmem = pool.alloc((STAGES, BN, BK), BF16, align=128)
            pool.commit()
            a_frag = Tx.alloc_local((1, MF, 4), U32)
            b_frag = Tx.alloc_local((1, NF, 2), U32)
            acc = Tx.alloc_local((MF, NF, 4), F32)

            @Tx.inline
            def prefetch(stage, k):
                """K tile k into a stage, if there is one; a group is closed in any case, so that counts
                hold.
                """
                if k < KT:
                    copy_tile(Asmem, A, stage, m_st, k, tid, BM, M, K, THREADS, BK, column)
                    copy_tile(Bsmem, B_T, stage, n_st, k, tid, BN, N, K, THREADS, BK, column)
                Tx.ptx.cp_async.commit_group()

            # TODO[begin] The main loop, as in rung 3.
            clear(acc, MF, NF)
            for s in Tx.unroll(STAGES):
                prefetch(s, s)
            for k in range(KT):
                Tx.ptx.cp_async.wait_group(STAGES - 1)
                Tx.cuda.cta_sync()  # tile k of all threads is there
                for step in Tx.unroll(BK // 16):
                    load_fragments(
                        a_frag, b_frag, 0, Asmem, Bsmem, k % STAGES, a_row, b_row, step, lane, MF, NF, column
                    )
                    multiply(acc, a_frag, b_frag, 0, MF, NF)
                Tx.cuda.cta_sync()  # all warps have read this stage
                prefetch(k % STAGES, k + STAGES)
            write_direct(D, acc, m_st + a_row, n_st + b_row, lane, M, N, MF, NF, out)
            # TODO[end]

    return compiled(kernel, arch)


def build_gemm_fragments(M, N, K, *, out=F32, arch="sm_80"):
    """Rung 5. Two sets of fragments: the next step's are on the way while this step multiplies.

    No faster: in rung 4 the compiler already loads ahead within a K tile. Rung 6 builds on it.
    """
    BM, BN, BK, STAGES, WARPS = 128, 256, 64, 3, 8
    # TODO[begin] MF, NF: a warp's part of the tile in units of 16 rows and 8 columns.
    # > raise NotImplementedError("build_gemm_fragments is not implemented yet")
    MF, NF = 4, 8
    # TODO[end]
    THREADS = 32 * WARPS
    column = swizzled
    MT, NT, KT = _shapes(M, N, K, out, BM, BN, BK)

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), BF16), B_T: Tx.Buffer((N, K), BF16), D: Tx.Buffer((M, N), out)):
        with Tx.kernel():
            n_tile, m_tile = Tx.cta_id([NT, MT], parent="kernel")
            warp = Tx.warp_id([WARPS], parent="cta")
            lane = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([THREADS], parent="cta")
            m_st = Tx.meta_var(m_tile * BM)
            n_st = Tx.meta_var(n_tile * BN)
            a_row = Tx.meta_var(warp % 2 * (MF * 16))  # the warp's part of the tile
            b_row = Tx.meta_var(warp // 2 * (NF * 8))

            pool = Tx.PoolAllocator()
            Asmem = pool.alloc((STAGES, BM, BK), BF16, align=128)
            Bsmem = pool.alloc((STAGES, BN, BK), BF16, align=128)
            pool.commit()
            a_frag = Tx.alloc_local((2, MF, 4), U32)
            b_frag = Tx.alloc_local((2, NF, 2), U32)
            acc = Tx.alloc_local((MF, NF, 4), F32)

            @Tx.inline
            def prefetch(stage, k):
                """K tile k into a stage, if there is one; a group is closed in any case, so that counts
                hold.
                """
                if k < KT:
                    copy_tile(Asmem, A, stage, m_st, k, tid, BM, M, K, THREADS, BK, column)
                    copy_tile(Bsmem, B_T, stage, n_st, k, tid, BN, N, K, THREADS, BK, column)
                Tx.ptx.cp_async.commit_group()

            @Tx.inline
            def fragments(stage, step):
                load_fragments(
                    a_frag, b_frag, step % 2, Asmem, Bsmem, stage, a_row, b_row, step, lane, MF, NF, column
                )  # fmt: skip

            # TODO[begin] The main loop. Load step + 1 into the other set before step multiplies.
            clear(acc, MF, NF)
            for s in Tx.unroll(STAGES):
                prefetch(s, s)
            for k in range(KT):
                Tx.ptx.cp_async.wait_group(STAGES - 1)
                Tx.cuda.cta_sync()  # tile k of all threads is there
                fragments(k % STAGES, 0)
                for step in Tx.unroll(BK // 16):
                    if step + 1 < BK // 16:
                        fragments(k % STAGES, step + 1)
                    multiply(acc, a_frag, b_frag, step % 2, MF, NF)
                Tx.cuda.cta_sync()  # all warps have read this stage
                prefetch(k % STAGES, k + STAGES)
            write_direct(D, acc, m_st + a_row, n_st + b_row, lane, M, N, MF, NF, out)
            # TODO[end]

    return compiled(kernel, arch)


def build_gemm_one_barrier(M, N, K, *, out=F32, arch="sm_80"):
    """Rung 6. One barrier a K tile: it says both that the next tile is there and that the one before is read.

    Copies go to the stage of the tile before, which all warps left before the last barrier. The next tile's
    first fragments are loaded before this tile's last step multiplies.
    """
    BM, BN, BK, STAGES, WARPS = 128, 256, 64, 3, 8
    # TODO[begin] MF, NF: a warp's part of the tile in units of 16 rows and 8 columns.
    # > raise NotImplementedError("build_gemm_one_barrier is not implemented yet")
    MF, NF = 4, 8
    # TODO[end]
    THREADS = 32 * WARPS
    column = swizzled
    MT, NT, KT = _shapes(M, N, K, out, BM, BN, BK)

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), BF16), B_T: Tx.Buffer((N, K), BF16), D: Tx.Buffer((M, N), out)):
        with Tx.kernel():
            n_tile, m_tile = Tx.cta_id([NT, MT], parent="kernel")
            warp = Tx.warp_id([WARPS], parent="cta")
            lane = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([THREADS], parent="cta")
            m_st = Tx.meta_var(m_tile * BM)
            n_st = Tx.meta_var(n_tile * BN)
            a_row = Tx.meta_var(warp % 2 * (MF * 16))  # the warp's part of the tile
            b_row = Tx.meta_var(warp // 2 * (NF * 8))

            pool = Tx.PoolAllocator()
            Asmem = pool.alloc((STAGES, BM, BK), BF16, align=128)
            Bsmem = pool.alloc((STAGES, BN, BK), BF16, align=128)
            pool.commit()
            a_frag = Tx.alloc_local((2, MF, 4), U32)
            b_frag = Tx.alloc_local((2, NF, 2), U32)
            acc = Tx.alloc_local((MF, NF, 4), F32)

            @Tx.inline
            def prefetch(stage, k):
                """K tile k into a stage, if there is one; a group is closed in any case, so that counts
                hold.
                """
                if k < KT:
                    copy_tile(Asmem, A, stage, m_st, k, tid, BM, M, K, THREADS, BK, column)
                    copy_tile(Bsmem, B_T, stage, n_st, k, tid, BN, N, K, THREADS, BK, column)
                Tx.ptx.cp_async.commit_group()

            @Tx.inline
            def fragments(stage, step):
                load_fragments(
                    a_frag, b_frag, step % 2, Asmem, Bsmem, stage, a_row, b_row, step, lane, MF, NF, column
                )  # fmt: skip

            # TODO[begin] The main loop with one barrier a tile. Fill STAGES - 1 stages; at the end of
            # | tile k wait for tile k + 1, one barrier, its first fragments, then the last step of
            # | tile k. Which stage may be overwritten in tile k? The last tile has no next one: write
            # | it out by itself.
            clear(acc, MF, NF)
            for s in Tx.unroll(STAGES - 1):
                prefetch(s, s)
            stage = Tx.local_scalar("int32")  # that is read
            free = Tx.local_scalar("int32")  # that has been read by all
            stage = 0
            free = STAGES - 1
            Tx.ptx.cp_async.wait_group(STAGES - 2)
            Tx.cuda.cta_sync()
            fragments(0, 0)
            for k in range(KT - 1):
                for step in Tx.unroll(BK // 16 - 1):
                    fragments(stage, step + 1)
                    if step == 0:
                        prefetch(free, k + STAGES - 1)
                    multiply(acc, a_frag, b_frag, step % 2, MF, NF)
                free = stage
                stage = Tx.if_then_else(stage == STAGES - 1, 0, stage + 1)
                Tx.ptx.cp_async.wait_group(STAGES - 2)
                Tx.cuda.cta_sync()  # tile k + 1 is there, and all have their fragments of tile k
                fragments(stage, 0)
                multiply(acc, a_frag, b_frag, 1, MF, NF)
            for step in Tx.unroll(BK // 16):  # the last tile
                if step + 1 < BK // 16:
                    fragments(stage, step + 1)
                multiply(acc, a_frag, b_frag, step % 2, MF, NF)
            write_direct(D, acc, m_st + a_row, n_st + b_row, lane, M, N, MF, NF, out)
            # TODO[end]

    return compiled(kernel, arch)


def build_gemm_64x96(M, N, K, *, out=F32, arch="sm_80"):
    """Rung 7. Warp tiles of 64 x 96 in tiles of 256 x 192: 10 ldmatrix.x4 for 48 mma instead of 8 for 32.

    Slower than rung 6: 192 accumulators leave no registers for a second set of fragments, and 4096 is no
    multiple of 192. It needs 172 KB of shared memory, more than an A100 has.
    """
    BM, BN, BK, STAGES, WARPS = 256, 192, 64, 3, 8
    # TODO[begin] MF, NF: a warp's part of the tile in units of 16 rows and 8 columns.
    # > raise NotImplementedError("build_gemm_64x96 is not implemented yet")
    MF, NF = 4, 12
    # TODO[end]
    THREADS = 32 * WARPS
    column = swizzled
    MT, NT, KT = _shapes(M, N, K, out, BM, BN, BK)

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), BF16), B_T: Tx.Buffer((N, K), BF16), D: Tx.Buffer((M, N), out)):
        with Tx.kernel():
            n_tile, m_tile = Tx.cta_id([NT, MT], parent="kernel")
            warp = Tx.warp_id([WARPS], parent="cta")
            lane = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([THREADS], parent="cta")
            m_st = Tx.meta_var(m_tile * BM)
            n_st = Tx.meta_var(n_tile * BN)
            a_row = Tx.meta_var(warp % 4 * (MF * 16))  # the warp's part of the tile
            b_row = Tx.meta_var(warp // 4 * (NF * 8))

            pool = Tx.PoolAllocator()
            Asmem = pool.alloc((STAGES, BM, BK), BF16, align=128)
            Bsmem = pool.alloc((STAGES, BN, BK), BF16, align=128)
            pool.commit()
            a_frag = Tx.alloc_local((1, MF, 4), U32)
            b_frag = Tx.alloc_local((1, NF, 2), U32)
            acc = Tx.alloc_local((MF, NF, 4), F32)

            @Tx.inline
            def prefetch(stage, k):
                """K tile k into a stage, if there is one; a group is closed in any case, so that counts
                hold.
                """
                if k < KT:
                    copy_tile(Asmem, A, stage, m_st, k, tid, BM, M, K, THREADS, BK, column)
                    copy_tile(Bsmem, B_T, stage, n_st, k, tid, BN, N, K, THREADS, BK, column)
                Tx.ptx.cp_async.commit_group()

            # TODO[begin] The main loop with one set of fragments and one barrier a tile.
            clear(acc, MF, NF)
            for s in Tx.unroll(STAGES - 1):
                prefetch(s, s)
            for k in range(KT):
                Tx.ptx.cp_async.wait_group(STAGES - 2)
                Tx.cuda.cta_sync()  # tile k of all threads is there, tile k - 1 has been read
                prefetch((k + STAGES - 1) % STAGES, k + STAGES - 1)
                for step in Tx.unroll(BK // 16):
                    load_fragments(
                        a_frag, b_frag, 0, Asmem, Bsmem, k % STAGES, a_row, b_row, step, lane, MF, NF, column
                    )
                    multiply(acc, a_frag, b_frag, 0, MF, NF)
            write_direct(D, acc, m_st + a_row, n_st + b_row, lane, M, N, MF, NF, out)
            # TODO[end]

    return compiled(kernel, arch)


@Tx.inline
def write_coalesced(D, tile, acc, m_st, n_st, a_row, b_row, lane, tid, M, N, BM, BN, MF, NF, out, threads):
    """All warps: D's tile into shared memory, in the order of the fragments, and from there by whole rows.

    A row of `tile` is BN numbers, its 16-byte chunks exchanged as in `swizzled`; each thread then writes 16
    bytes, a warp 512 bytes side by side. The shared memory must be free.
    """
    PER = Tx.meta_var(16 // (4 if out == F32 else 2))  # numbers in a chunk
    for i in Tx.unroll(MF):
        for j in Tx.unroll(NF):
            for r in Tx.unroll(2):
                row = Tx.meta_var(a_row + i * 16 + lane // 4 + r * 8)
                col = Tx.meta_var(b_row + j * 8 + lane % 4 * 2)
                at = Tx.meta_var((col // PER ^ (row % 8)) * PER + col % PER)
                if out == F32:
                    Tx.ptx.st(
                        tile.ptr_to([row, at]), acc[i, j, r * 2], acc[i, j, r * 2 + 1],
                        space="shared", vec="v2", ptx_type="f32",
                    )  # fmt: skip
                else:
                    Tx.ptx.st(
                        tile.ptr_to([row, at]), packed(acc, i, j, r * 2), space="shared", ptx_type="b32"
                    )
    Tx.cuda.cta_sync()
    for i in Tx.unroll(BM * BN // PER // threads):
        row = Tx.meta_var((i * threads + tid) // (BN // PER))
        chunk = Tx.meta_var((i * threads + tid) % (BN // PER))
        if Tx.And(m_st + row < M, n_st + chunk * PER < N):
            with Tx.thread():
                Tx.copy(
                    D[m_st + row, n_st + chunk * PER : n_st + chunk * PER + PER],
                    tile[row, (chunk ^ (row % 8)) * PER : (chunk ^ (row % 8)) * PER + PER],
                )


def build_gemm_rows(M, N, K, *, out=F32, arch="sm_80"):
    """Rung 8. Rung 6, and D goes through the ring's memory: whole rows of 512 B, 16 bytes a thread."""
    BM, BN, BK, STAGES, WARPS = 128, 256, 64, 3, 8
    # TODO[begin] MF, NF: a warp's part of the tile in units of 16 rows and 8 columns.
    # > raise NotImplementedError("build_gemm_rows is not implemented yet")
    MF, NF = 4, 8
    # TODO[end]
    THREADS = 32 * WARPS
    column = swizzled
    MT, NT, KT = _shapes(M, N, K, out, BM, BN, BK)

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), BF16), B_T: Tx.Buffer((N, K), BF16), D: Tx.Buffer((M, N), out)):
        with Tx.kernel():
            n_tile, m_tile = Tx.cta_id([NT, MT], parent="kernel")
            warp = Tx.warp_id([WARPS], parent="cta")
            lane = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([THREADS], parent="cta")
            m_st = Tx.meta_var(m_tile * BM)
            n_st = Tx.meta_var(n_tile * BN)
            a_row = Tx.meta_var(warp % 2 * (MF * 16))  # the warp's part of the tile
            b_row = Tx.meta_var(warp // 2 * (NF * 8))

            pool = Tx.PoolAllocator()
            Asmem = pool.alloc((STAGES, BM, BK), BF16, align=128)
            Bsmem = pool.alloc((STAGES, BN, BK), BF16, align=128)
            pool.move_base_to(0)
            tile = pool.alloc((BM, BN), out, align=128)
            pool.commit()
            a_frag = Tx.alloc_local((2, MF, 4), U32)
            b_frag = Tx.alloc_local((2, NF, 2), U32)
            acc = Tx.alloc_local((MF, NF, 4), F32)

            @Tx.inline
            def prefetch(stage, k):
                """K tile k into a stage, if there is one; a group is closed in any case, so that counts
                hold.
                """
                if k < KT:
                    copy_tile(Asmem, A, stage, m_st, k, tid, BM, M, K, THREADS, BK, column)
                    copy_tile(Bsmem, B_T, stage, n_st, k, tid, BN, N, K, THREADS, BK, column)
                Tx.ptx.cp_async.commit_group()

            @Tx.inline
            def fragments(stage, step):
                load_fragments(
                    a_frag, b_frag, step % 2, Asmem, Bsmem, stage, a_row, b_row, step, lane, MF, NF, column
                )  # fmt: skip

            # TODO[begin] The main loop, as in rung 6; then a barrier, and write_coalesced.
            clear(acc, MF, NF)
            for s in Tx.unroll(STAGES - 1):
                prefetch(s, s)
            stage = Tx.local_scalar("int32")  # that is read
            free = Tx.local_scalar("int32")  # that has been read by all
            stage = 0
            free = STAGES - 1
            Tx.ptx.cp_async.wait_group(STAGES - 2)
            Tx.cuda.cta_sync()
            fragments(0, 0)
            for k in range(KT - 1):
                for step in Tx.unroll(BK // 16 - 1):
                    fragments(stage, step + 1)
                    if step == 0:
                        prefetch(free, k + STAGES - 1)
                    multiply(acc, a_frag, b_frag, step % 2, MF, NF)
                free = stage
                stage = Tx.if_then_else(stage == STAGES - 1, 0, stage + 1)
                Tx.ptx.cp_async.wait_group(STAGES - 2)
                Tx.cuda.cta_sync()  # tile k + 1 is there, and all have their fragments of tile k
                fragments(stage, 0)
                multiply(acc, a_frag, b_frag, 1, MF, NF)
            for step in Tx.unroll(BK // 16):  # the last tile
                if step + 1 < BK // 16:
                    fragments(stage, step + 1)
                multiply(acc, a_frag, b_frag, step % 2, MF, NF)
            Tx.cuda.cta_sync()  # all have read the last tile: its memory is free
            write_coalesced(
                D, tile, acc, m_st, n_st, a_row, b_row, lane, tid, M, N, BM, BN, MF, NF, out, THREADS
            )
            # TODO[end]

    return compiled(kernel, arch)


def place(tile, rows, columns, group=16):
    """(row, column) of a tile: groups of `group` rows of tiles, in a group column by column."""
    first = tile // (group * columns) * group
    inside = tile % (group * columns)
    height = min(group, rows) if rows % group == 0 or rows < group else Tx.min(group, rows - first)
    return first + inside % height, inside // height


def build_gemm_blocks(M, N, K, *, out=F32, arch="sm_80"):
    """Rung 9. CTAs take the tiles in groups of 16 rows of tiles, in a group column by column.

    The 132 tiles in work at one time then need 2048 rows of A and 2112 of B; row by row it was 1056 and 4096.
    """
    BM, BN, BK, STAGES, WARPS = 128, 256, 64, 3, 8
    # TODO[begin] MF, NF: a warp's part of the tile in units of 16 rows and 8 columns.
    # > raise NotImplementedError("build_gemm_blocks is not implemented yet")
    MF, NF = 4, 8
    # TODO[end]
    THREADS = 32 * WARPS
    column = swizzled
    MT, NT, KT = _shapes(M, N, K, out, BM, BN, BK)

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), BF16), B_T: Tx.Buffer((N, K), BF16), D: Tx.Buffer((M, N), out)):
        with Tx.kernel():
            bx = Tx.cta_id([MT * NT], parent="kernel")
            m_tile, n_tile = Tx.meta_var(place(bx, MT, NT))
            warp = Tx.warp_id([WARPS], parent="cta")
            lane = Tx.thread_id([32], parent="warp")
            tid = Tx.thread_id([THREADS], parent="cta")
            m_st = Tx.meta_var(m_tile * BM)
            n_st = Tx.meta_var(n_tile * BN)
            a_row = Tx.meta_var(warp % 2 * (MF * 16))  # the warp's part of the tile
            b_row = Tx.meta_var(warp // 2 * (NF * 8))

            pool = Tx.PoolAllocator()
            Asmem = pool.alloc((STAGES, BM, BK), BF16, align=128)
            Bsmem = pool.alloc((STAGES, BN, BK), BF16, align=128)
            pool.move_base_to(0)
            tile = pool.alloc((BM, BN), out, align=128)
            pool.commit()
            a_frag = Tx.alloc_local((2, MF, 4), U32)
            b_frag = Tx.alloc_local((2, NF, 2), U32)
            acc = Tx.alloc_local((MF, NF, 4), F32)

            @Tx.inline
            def prefetch(stage, k):
                """K tile k into a stage, if there is one; a group is closed in any case, so that counts
                hold.
                """
                if k < KT:
                    copy_tile(Asmem, A, stage, m_st, k, tid, BM, M, K, THREADS, BK, column)
                    copy_tile(Bsmem, B_T, stage, n_st, k, tid, BN, N, K, THREADS, BK, column)
                Tx.ptx.cp_async.commit_group()

            @Tx.inline
            def fragments(stage, step):
                load_fragments(
                    a_frag, b_frag, step % 2, Asmem, Bsmem, stage, a_row, b_row, step, lane, MF, NF, column
                )  # fmt: skip

            # TODO[begin] The main loop, as in rung 8.
            clear(acc, MF, NF)
            for s in Tx.unroll(STAGES - 1):
                prefetch(s, s)
            stage = Tx.local_scalar("int32")  # that is read
            free = Tx.local_scalar("int32")  # that has been read by all
            stage = 0
            free = STAGES - 1
            Tx.ptx.cp_async.wait_group(STAGES - 2)
            Tx.cuda.cta_sync()
            fragments(0, 0)
            for k in range(KT - 1):
                for step in Tx.unroll(BK // 16 - 1):
                    fragments(stage, step + 1)
                    if step == 0:
                        prefetch(free, k + STAGES - 1)
                    multiply(acc, a_frag, b_frag, step % 2, MF, NF)
                free = stage
                stage = Tx.if_then_else(stage == STAGES - 1, 0, stage + 1)
                Tx.ptx.cp_async.wait_group(STAGES - 2)
                Tx.cuda.cta_sync()  # tile k + 1 is there, and all have their fragments of tile k
                fragments(stage, 0)
                multiply(acc, a_frag, b_frag, 1, MF, NF)
            for step in Tx.unroll(BK // 16):  # the last tile
                if step + 1 < BK // 16:
                    fragments(stage, step + 1)
                multiply(acc, a_frag, b_frag, step % 2, MF, NF)
            Tx.cuda.cta_sync()  # all have read the last tile: its memory is free
            write_coalesced(
                D, tile, acc, m_st, n_st, a_row, b_row, lane, tid, M, N, BM, BN, MF, NF, out, THREADS
            )
            # TODO[end]

    return compiled(kernel, arch)
