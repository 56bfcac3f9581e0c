// source: vllm-project/flash-attention#182, 2026-08-25
// link: https://github.com/vllm-project/flash-attention/pull/182
// wrong: statistics are handed back once their registers were used, without wait::ld, and tcgen05.st overwrites them
// finds: race|async-pending review: tcgen05.wait::ld
// launch: threads=160
KERNEL(160) {
    __shared__ u32 base;
    __shared__ u64 ready, is_free;
    const u32 t = threadIdx.x, warp = t / 32;
    if (t == 0) { init(&ready, 32); init(&is_free, 32); }
    if (warp == 0) alloc(&base, 32);
    before_sync();
    __syncthreads();
    after_sync();
    const u32 a = base;
    if (warp == 4) {
        for (int i = 0; i < 3; i++) {
            if (i) { wait(&is_free, i - 1 & 1); after_sync(); }
            st_tmem(a, i);
            wait_st();
            before_sync();
            arrive(&ready);
        }
    }
    if (warp == 0) {
        for (int i = 0; i < 3; i++) {
            wait(&ready, i & 1);
            after_sync();
            const float statistic = ld_tmem(a);
            AFTER(wait_ld();)
            out[32 * i + t] = statistic * 2;
            before_sync();
            arrive(&is_free);
        }
        wait_ld();
    }
    free_all(a, 32);
}
