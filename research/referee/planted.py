"""Mistakes that are planted in kernels of the TIRx library: operator of ptx_operators.py -> description."""

PLANTED = {
    "a wait that passes": "a wait on an mbarrier dropped",
    "the other parity": "a wait for the other phase",
    "half the bytes": "expect_tx with half the bytes",
    "no announcement": "no expect_tx",
    "no arrival": "an arrival dropped",
    "no commit": "tcgen05.commit dropped",
    "no copy": "a bulk copy dropped",
    "no proxy fence": "no fence.proxy.async",
    "no tcgen05 fence": "no tcgen05.fence",
    "no wait for tensor memory": "no tcgen05.wait",
    "no wait for a group": "no wait for a group of copies",
    "one group more under way": "a wait that leaves one group more under way",
    "no CTA barrier": "a CTA barrier dropped",
    "no cluster barrier": "a cluster barrier dropped",
    "no warp barrier": "no __syncwarp",
    "no dealloc": "tensor memory not freed",
    "half the columns freed": "half of the tensor memory freed",
    "one arrival more expected": "an mbarrier that expects one arrival more",
    "one arrival fewer expected": "an mbarrier that expects one arrival fewer",
}
