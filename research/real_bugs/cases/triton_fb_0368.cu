// source: facebookexperimental/triton#368, 2025-09-24
// link: https://github.com/facebookexperimental/triton/pull/368
// wrong: fence.proxy.async stands after the TMA store that it should precede
// finds: proxy-fence:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ alignas(128) float data[1024];
    const u32 t = threadIdx.x;
    for (int i = t; i < 1024; i += 128) data[i] = in[i];
    AFTER(fence_async();)
    __syncthreads();
    if (t == 0) {
        store_tile(&store, 0, 0, data);
        bulk_commit();
        bulk_wait<0>();
    }
    BEFORE(fence_async();)
}
