"""A kernel of the lab's, built before any student's, so that TVM has loaded what it needs for a first kernel.

Each step is built in a fork of the process (apart.py), which would otherwise have to load that again.
"""

from tirxlab import Tx
from tirxlab.toolchain.build import draft

SIZE = 128, 64


def build_first() -> None:
    """Lowers a kernel in which a CTA copies a tile through shared memory."""

    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer(SIZE, "float16"), D: Tx.Buffer(SIZE, "float16")):  # type: ignore[valid-type]
        with Tx.kernel():
            row = Tx.cta_id([1], parent="kernel")
            wg_id = Tx.warpgroup_id([1], parent="cta")  # noqa: F841
            warp_id = Tx.warp_id([4], parent="warpgroup")  # noqa: F841
            lane_id = Tx.thread_id([32], parent="warp")  # noqa: F841
            pool = Tx.PoolAllocator()
            tile = pool.alloc(SIZE, "float16")
            pool.commit()
            with Tx.cta():
                Tx.copy(tile[:, :], A[row * 128 : row * 128 + 128, :])
            Tx.cuda.cta_sync()
            with Tx.cta():
                Tx.copy(D[row * 128 : row * 128 + 128, :], tile[:, :])

    draft(kernel)
