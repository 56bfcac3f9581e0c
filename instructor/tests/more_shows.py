"""More techniques for show: kernels that look overlapped, or multiplied, when they are measured.

Like those of shows.py, each is handed in as a step whose technique it only pretends to use.
"""

from __future__ import annotations

import re

from kernel_variants import put
from shows import ZEROS, Show, by_threads, one_stage, while_loading

from instructor.exploits.exploit import HELP


def sums_of_ones(text: str) -> str:
    """The tensor core multiplies ones, which gives K; threads scale the real product by it, over K."""
    scaled = r"\1Dreg_16b[j] = Tx.cast(total[0] * (Dreg[j] / Tx.float32(K)), F16)"
    ones = r"""\1with Tx.thread():
\1    for j in range(BLK_K):
\1        Asmem[warp_id * 32 + lane_id, j] = Tx.float16(1)
\1        Bsmem[warp_id * 32 + lane_id, j] = Tx.float16(1)"""
    return put(
        by_threads(text),
        (r"^( +)Dreg_16b\[j\] = Tx\.cast\(total\[0\], F16\)", scaled),
        (r"^( +)with Tx\.cta\(\):\n +Tx\.copy\(Asmem.*\n +Tx\.copy\(Bsmem.*$", ones),
    )


def unread_products(text: str) -> str:
    """One stage; while its load is in flight, the tensor core computes products that nobody reads."""
    more = r"""\1Tx.gemm_async(
\1    tmem[:, 256 : 256 + BLK_N], Zsmem[0, :, :], Zsmem[0, :, :],
\1    accum=False, dispatch="tcgen05", cta_group=1
\1)"""
    return while_loading(text, more)


def most_unread(text: str) -> str:
    """The same with three unread products for each that is needed."""
    one = re.search(r"^ +Tx\.gemm_async\(\n.*256 : 256(?:.*\n)+?^ +\)\n", unread_products(text), re.M)
    return unread_products(text).replace(one[0], 3 * one[0])


_LOOP = re.compile(
    r"^            phase = 0\n(?:.*\n)+?(?=            Tx\.cuda\.cta_sync\(\)  # the product)", re.M
)


def sums_that_begin_again(text: str) -> str:
    """Step 4, and at each K tile a small extra sum begins, a column of which is read: as if a tile began."""
    loop = """            phase = 0
            Xreg = Tx.alloc_local((2,), F32)
            Xreg_wg = Xreg.view(128, 2, layout=TileLayout(S[(128, 2) : (1 @ axis_tid_in_wg, 1)]))
            for k in range(K_TILES):
                if warp_id == 0:
                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                        tma_load(k)
                        Tx.ptx.mbarrier.try_wait(tma_bar.ptr_to([0]), phase)
                        Tx.ptx.tcgen05.fence.after_thread_sync()
                        Tx.gemm_async(
                            tmem[:, 256:288], Asmem[:, :], Bsmem[:32, :],
                            accum=False, dispatch="tcgen05", cta_group=1,
                        )
                        mma(k != 0)
                Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0]), phase)
                Tx.ptx.tcgen05.fence.after_thread_sync()
                with Tx.warpgroup():
                    Tx.copy(Xreg_wg[:, :1], tmem[:, 256:257])
                Tx.ptx.tcgen05.fence.before_thread_sync()
                Tx.cuda.cta_sync()
                phase = phase ^ 1
"""
    return text.replace(_LOOP.search(text)[0], loop)


def _slices_at_once(count: int) -> str:
    return f"""            phase = 0
            if warp_id == 0:
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    for b in range((K_TILES + {count} - 1) // {count}):
                        for s in Tx.unroll({count}):
                            if b * {count} + s < K_TILES:
                                tma_load(b * {count} + s, s)
                        for s in Tx.unroll({count}):
                            if b * {count} + s < K_TILES:
                                Tx.ptx.mbarrier.try_wait(tma_bar.ptr_to([s]), phase)
                                Tx.ptx.tcgen05.fence.after_thread_sync()
                                mma(s, b + s != 0)
                        Tx.ptx.tcgen05.commit(mma_bar.ptr_to([0]), cta_group=1)
                        Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0]), phase)
                        phase = phase ^ 1
"""


def many_slices(count: int):
    """Step 4 with so many slices of 16 columns, loaded together when the tensor core has finished all."""

    def edit(text: str) -> str:
        layout = f"_LAYOUT = tma_shared_layout(F16, SwizzleMode.SWIZZLE_32B_ATOM, ({count}, 128, 16))"
        sizes = f"    BLK_K = 16\n    K_TILES = K // BLK_K\n    A{layout}\n    B{layout}"
        return put(
            text.replace(_LOOP.search(text)[0], _slices_at_once(count)),
            (r"K=\(K, BLK_K\)", "K=(K, 16)"),
            (r"^    K_TILES = K // BLK_K$", sizes),
            (r"def tma_load\(k\):", "def tma_load(k, s):"),
            (r"def mma\(accum\):", "def mma(s, accum):"),
            (r"tma_bar\.ptr_to\(\[0\]\)(\}|, TILE)", r"tma_bar.ptr_to([s])\1"),
            (r"(Asmem|Bsmem)\[:, :\]", r"\1[s, :, :]"),
            (r"(Asmem|Bsmem) = pool\.alloc\(\(", rf"\1 = pool.alloc(({count}, "),
            (r"tma_bar = pool\.alloc\(\(1,\)", f"tma_bar = pool.alloc(({count},)"),
            (r"^ +Tx\.ptx\.tcgen05\.commit\(.*\n(?=\n +# TODO\[end\])", ""),
            (
                r"^( +)(Tx\.ptx\.mbarrier\.init\(tma_bar\.ptr_to\(\[)0(\]\), 1\))",
                rf"\1for i in Tx.unroll({count}):\n\1    \2i\3",
            ),
        )

    return edit


def zeros_between(text: str) -> str:
    """After each K tile one from beyond the edge of A and B: zeros, whose products hide the next load."""
    return put(
        text,
        (r"^    K_TILES = K // BLK_K$", "    K_TILES = 2 * (K // BLK_K)"),
        (
            r"k_st = Tx\.meta_var\(k \* BLK_K\)",
            "k_st = Tx.meta_var(Tx.if_then_else(k % 2 == 0, k // 2 * BLK_K, K))",
        ),
    )


def two_tiles_each(text: str) -> str:
    """Each CTA skips its third tile and all later ones."""
    valid = r"while tile_scheduler\.valid\(\)"
    return put(text, (valid, r"\g<0> and tile_scheduler.linear_idx < 2 * SM_COUNT"))


def halves_of_columns(text: str) -> str:
    """Step 9's tile; two warps multiply the same rows of A, each by half of the rows of B."""
    load = r"^ +for c in Tx\.unroll\(NUM_CONSUMER\):\n +a_st = .*\n( +)    Tx\.copy_async\(Asmem\[stage, c"
    return put(
        text,
        (r"M=\(M, CTA_GROUP \* NUM_CONSUMER \* BLK_M\)", "M=(M, CTA_GROUP * BLK_M)"),
        (r"TILE_BYTES = CTA_GROUP \* \(NUM_CONSUMER \* ", "TILE_BYTES = CTA_GROUP * ("),
        (r"\(PIPE_DEPTH, NUM_CONSUMER, BLK_M, BLK_K\)", "(PIPE_DEPTH, BLK_M, BLK_K)"),
        (r"M // \(CTA_GROUP \* NUM_CONSUMER \* BLK_M\)", "M // (CTA_GROUP * BLK_M)"),
        (r"\+ cbx\) \* NUM_CONSUMER \* BLK_M", "+ cbx) * BLK_M"),
        (load, r"\1Tx.copy_async(Asmem[stage"),
        (r"A\[a_st : a_st \+ BLK_M", "A[m_st : m_st + BLK_M"),
        (r"warp_id \* MMA_N : warp_id \* MMA_N \+ MMA_N", "warp_id * BLK_N : (warp_id + 1) * BLK_N"),
        (r"Asmem\[stage, warp_id, :, :\]", "Asmem[stage, :, :]"),
        (r"Bsmem\[stage, :, :\],\n( +)accum", r"Bsmem[stage, warp_id * 64 : warp_id * 64 + 64, :],\n\1accum"),
        (r"MMA_N // EPI_N", "BLK_N // EPI_N"),
        (r"wg_id \* MMA_N \+ i \* EPI_N", "wg_id * BLK_N + i * EPI_N"),
        (r"m_st \+ wg_id \* BLK_M", "m_st"),
        (r"d_n_st \+ i \* EPI_N", "d_n_st + i * BLK_N + wg_id * EPI_N"),
    )  # fmt: skip


_ZEROS_ASIDE = r"""\1for c in Tx.unroll(3):
\1    Tx.gemm_async(
\1        tmem[:, 128 + c * 128 : 256 + c * 128], Zsmem[0, :, :], Zsmem[0, :, :],
\1        accum=False, dispatch="tcgen05", cta_group=1,
\1    )
\g<0>"""
_READ_ONCE = r"""\1if tiles == 0:
\1    for c in Tx.unroll(6):
\1        with Tx.warpgroup():
\1            Tx.copy(Dreg_wg[:, :], tmem[:, 128 + c * 64 : 192 + c * 64])
\1tiles = tiles + 1
\g<0>"""


def sums_of_zeros_aside(text: str) -> str:
    """Half of the CTAs take all tiles; sums of zeros, read once, make each tile look four times as large."""
    half = "max(1, SM_COUNT // 2)"
    return put(
        text,
        (r"num_clusters=SM_COUNT,", f"num_clusters={half},"),
        (r"tile_scheduler\.init\(bx\)", f"tile_scheduler.init(Tx.if_then_else(bx < {half}, bx, 1 << 20))"),
        (
            r"^( +)Dsmem = pool\.alloc\(.*$",
            r"\g<0>\n\1Zsmem = pool.alloc((1, BLK_M, BLK_K), F16, layout=A_LAYOUT)",
        ),
        (r"^( +)mma2ld\.arrive\(0, .*$", _ZEROS_ASIDE),
        (r'^( +)Tx\.ptx\.fence\.proxy_async\("shared::cta"\)\n( +)Tx\.ptx\.fence\.mbarrier_init.*$', ZEROS),
        (r"^( +)for i in Tx\.unroll\(BLK_N // EPI_N\):\n( +)with Tx\.warpgroup", _READ_ONCE),
        (r"^( +)wb_phase\.init\(is_producer=False\)$", r"\g<0>\n\1tiles = 0"),
    )


_FLAGS = r'''
def flags(cuda):
    """The loading warp waits for a number in shared memory, which the other one writes."""
    help = """
__device__ void give(unsigned at, unsigned n) {
  asm volatile("st.release.cta.shared::cta.u32 [%0], %1;" :: "r"(at), "r"(n) : "memory");
}
__device__ void need(unsigned at, unsigned n) {
  for (unsigned v = 0; v < n;) {
    __nanosleep(2000);
    asm volatile("ld.acquire.cta.shared::cta.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
  }
}
"""
    wait, at = "tvm_builtin_ptx_mbarrier_try_wait(", "(unsigned)__cvta_generic_to_shared(pool_buf_ptr) + 64u"
    load = wait + "(&(((uint64_t*)pool_buf_ptr)[(tma_phase_stage_ptr[0] + 2)])), tma_phase_phase_ptr[0]);"
    done = "ptx_tcgen05_commit_cta_group_1((&(((uint64_t*)pool_buf_ptr)[(mma_phase_stage_ptr[0] + 2)])));"
    first = "if (tvm_builtin_cuda_thread_rank() == 0) {"
    told = f"{wait}(&(((uint64_t*)pool_buf_ptr)[2])), done & 1); ++done; give({at}, done);"
    assert load in cuda and done in cuda and first in cuda
    cuda = cuda.replace('extern "C" __global__', help + 'extern "C" __global__', 1)
    cuda = cuda.replace("extern __shared__ ", "unsigned made = 0, done = 0; extern __shared__ ")
    cuda = cuda.replace(load, f"if (made) need({at}, made); ++made;").replace(done, done + told)
    return cuda.replace(first, f"{first} give({at}, 0);", 1)


def hgemm_v7(M, N, K):
    lower_to(flags)
    return inner(M, N, K)


'''


def flag_for_a_barrier(text: str) -> str:
    """One stage, released by a number in shared memory instead of a barrier."""
    return HELP + one_stage(text).replace("def hgemm_v7(", "def inner(") + _FLAGS


MORE = (
    Show("sums-of-ones", 1, 1, sums_of_ones, "other numbers than those of A and B"),
    Show("sums-of-ones", 2, 2, sums_of_ones, "other numbers than those of A and B"),
    Show("unread-products", 7, 7, unread_products, "load one stage ahead"),
    Show("most-products-unread", 8, 8, most_unread, "is not part of the product"),
    Show("sums-that-begin-again", 4, 5, sums_that_begin_again, "load one stage ahead"),
    Show("many-slices-at-once", 4, 5, many_slices(16), "always load one ahead"),
    Show("zeros-between", 5, 5, zeros_between, "load one stage ahead"),
    Show("zeros-between", 7, 7, zeros_between, "load one stage ahead"),
    Show("nothing-from-tile-3", 7, 7, two_tiles_each, "a few CTAs"),
    Show("half-of-the-ctas-from-100-sms", 7, 7, sums_of_zeros_aside, "a few CTAs"),
    Show("halves-of-columns", 10, 10, halves_of_columns, "the same rows of A"),
    Show("flag-for-a-barrier", 7, 6, flag_for_a_barrier, "load one stage ahead"),
    Show("flag-for-a-barrier", 7, 7, flag_for_a_barrier, "load one stage ahead"),
)
