// source: tile-ai/tilelang#2566, 2026-07-09
// link: https://github.com/tile-ai/tilelang/issues/2566
// wrong: with one iteration the copy gets a bare expect_tx and no arrival, so its barrier never completes
// finds: deadlock: 0/1 arrived
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ alignas(128) float data[1024];
    __shared__ u64 full;
    const u32 t = threadIdx.x;
    if (t == 0) { init(&full, 1); fence_mbarrier_init(); }
    __syncthreads();
    if (t == 0) {
        BEFORE(ASM("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 4096;" ::"r"(at(&full)) : "memory");)
        AFTER(expect(&full, 4096);)
        bulk_load(data, in, 4096, &full);
    }
    if (t >= 32) {
        wait(&full, 0);
        out[t] = data[t];
    }
}
