// source: pytorch/ao#4278, 2026-04-14
// link: https://github.com/pytorch/ao/pull/4278
// wrong: the proxy fence stands behind __syncthreads, so that nothing orders it before thread 0's TMA store
// finds: proxy-fence review: fence.proxy.async ran after the barrier
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ alignas(128) float data[1024];
    const u32 t = threadIdx.x;
    for (int i = t; i < 1024; i += 128) data[i] = 0.5f * in[i];
    BEFORE(__syncthreads();)
    fence_async();
    AFTER(__syncthreads();)
    if (t == 0) {
        store_tile(&store, 0, 64, data);
        bulk_commit();
        bulk_wait<0>();
    }
}
