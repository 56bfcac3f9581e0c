// source: NVIDIA/TransformerEngine#2695, 2026-02-20
// link: https://github.com/NVIDIA/TransformerEngine/pull/2695
// wrong: no proxy fence between the CTA's loads of a stage and the TMA copy of the next one into it
// finds: proxy-fence review:
// open: reads through the generic proxy before an asynchronous write of the same bytes need no fence here: most public pipelines leave it out
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ alignas(128) float data[1024];
    __shared__ u64 full;
    const u32 t = threadIdx.x;
    if (t == 0) { init(&full, 1); fence_mbarrier_init(); }
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        if (t == 0) { expect(&full, 4096); load(data, &row, 32 * i, 0, &full); }
        wait(&full, i & 1);
        out[128 * i + t] = data[1023 - t];
        AFTER(fence_async();)
        __syncthreads();
    }
}
