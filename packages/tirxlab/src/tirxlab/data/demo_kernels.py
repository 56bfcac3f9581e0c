"""Two finished kernels for `./lab demo`: a copy by TMA, and the same with one mistake planted.

    python -c "from tirxlab.data.demo_kernels import copy_rows; print(copy_rows(128).attrs)"
Nothing of the ten steps is given away: a copy multiplies nothing.
"""

from tirxlab import Tx

ROWS, COLS = 128, 64
TILE_BYTES = ROWS * COLS * 2


def copy_rows(M: int, announced: int = TILE_BYTES):
    """Y = X, both (M, 64) float16: each CTA loads 128 rows by TMA, and its threads store them.

    announced: the bytes that the barrier is told to expect; TMA brings TILE_BYTES.
    """
    if M <= 0 or M % ROWS:
        raise ValueError(f"M must be a multiple of {ROWS} (got {M})")

    @Tx.prim_func(tirx=True)
    def kernel(X: Tx.Buffer((M, COLS), "float16"), Y: Tx.Buffer((M, COLS), "float16")):
        with Tx.kernel():
            bx = Tx.cta_id([M // ROWS], parent="kernel")
            Tx.warpgroup_id([1], parent="cta")
            warp_id = Tx.warp_id([4], parent="warpgroup")
            lane_id = Tx.thread_id([32], parent="warp")
            row = Tx.meta_var(bx * ROWS)
            pool = Tx.PoolAllocator()
            loaded = pool.alloc((1,), "uint64")
            pool.move_base_to(1024)
            tile = pool.alloc((ROWS, COLS), "float16")
            pool.commit()
            if warp_id == 0 and lane_id == 0:
                Tx.ptx.mbarrier.init(loaded.ptr_to([0]), 1)
            Tx.ptx.fence.mbarrier_init()
            Tx.cuda.cta_sync()
            if warp_id == 0:
                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
                    Tx.copy_async(tile[:, :], X[row : row + ROWS, :], dispatch="tma", mbar=loaded.ptr_to([0]))
                    Tx.ptx.mbarrier.arrive.expect_tx(loaded.ptr_to([0]), announced)
            Tx.ptx.mbarrier.try_wait(loaded.ptr_to([0]), 0)
            with Tx.cta():
                Tx.copy(Y[row : row + ROWS, :], tile[:, :])

    return kernel
