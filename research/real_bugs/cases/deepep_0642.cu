// source: deepseek-ai/DeepEP#642, 2026-05-24
// link: https://github.com/deepseek-ai/DeepEP/pull/642
// wrong: no fence.proxy.async between loads of a buffer and the bulk copy that overwrites it
// finds: proxy-fence review:
// open: reads through the generic proxy before an asynchronous write of the same bytes need no fence here: most public pipelines leave it out
// launch: threads=32 target=sm_90a
KERNEL(32) {
    __shared__ alignas(128) float data[32];
    __shared__ u64 full;
    const u32 t = threadIdx.x;
    if (t == 0) { init(&full, 1); fence_mbarrier_init(); }
    __syncwarp();
    for (int i = 0; i < 3; i++) {
        if (t == 0) { expect(&full, 128); bulk_load(data, in + 32 * i, 128, &full); }
        wait(&full, i & 1);
        out[32 * i + t] = data[31 - t];
        AFTER(fence_async();)
        __syncwarp();
    }
}
