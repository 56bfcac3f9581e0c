"""A small TMA kernel for the tests of build(), with comments that mark the lines to be found again."""

from pathlib import Path

from tirxlab import SwizzleMode, TMABar, Tx, tma_shared_layout

SWIZZLED = tma_shared_layout("float16", SwizzleMode.SWIZZLE_128B_ATOM, (64, 64))


def line_with(place: str) -> int:
    """The one line of this file that ends in the comment `# <place>`."""
    lines = Path(__file__).read_text().splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if line.endswith(f"# <{place}>")]
    return number


def loader(M=256, K=128, box=64):
    """Every CTA loads a box of A by TMA in an inlined function; each thread writes one element of it to D."""

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((M, K), "float16"), D: Tx.Buffer((M // 64, 128), "float16")):
        with Tx.kernel():
            bx = Tx.cta_id([M // 64], parent="kernel")
            wg_id = Tx.warpgroup_id([1], parent="cta")  # noqa: F841
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")
            pool = Tx.PoolAllocator()
            bars = TMABar(pool, 2, "loaded")
            tile = pool.alloc((64, 64), "float16", layout=SWIZZLED)
            pool.commit()
            bars.init(1)  # <init>
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()

            @Tx.inline
            def load():
                Tx.copy_async(  # <copy>
                    tile[:, :box],
                    A[bx * 64 : bx * 64 + 64, K - 64 : K - 64 + box],
                    dispatch="tma",
                    mbar=bars.ptr_to([0]),
                    cta_group=1,
                )
                bars.arrive(0, 64 * 64 * 2)  # <arrive>

            with Tx.thread(parent="warpgroup")[warp_id * 32 + lane_id == 0]:
                load()  # <call>
            bars.wait(0, 0)  # <wait>
            D[bx, warp_id * 32 + lane_id] = tile[lane_id, warp_id]  # <store>

    return kernel
