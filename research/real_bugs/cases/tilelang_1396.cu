// source: tile-ai/tilelang#1396, 2025-12-10
// link: https://github.com/tile-ai/tilelang/pull/1396
// wrong: every lane of the producer arrives at a barrier that was made for one elected lane
// finds: mbarrier:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ alignas(128) float data[1024];
    __shared__ u64 full;
    const u32 t = threadIdx.x;
    if (t == 0) { init(&full, 1); fence_mbarrier_init(); }
    __syncthreads();
    if (t < 32) {
        if (t == 0) {
            ASM("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 4096;" ::"r"(at(&full)) : "memory");
            load(data, &row, 0, 0, &full);
        }
        __syncwarp();
        AFTER(if (t == 0)) arrive(&full);
    } else {
        wait(&full, 0);
        out[t] = data[t];
    }
}
