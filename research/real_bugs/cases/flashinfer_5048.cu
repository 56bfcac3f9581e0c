// source: flashinfer-ai/flashinfer#5048, 2026-09-09
// link: https://github.com/flashinfer-ai/flashinfer/pull/5048
// wrong: warps without work wait for each phase, but nobody waits for them: a late one misses a phase and spins
// finds: mbarrier|deadlock:
// launch: threads=96 target=sm_90a
KERNEL(96) {
    __shared__ float data[32];
    __shared__ u64 full, is_free;
    const u32 t = threadIdx.x, warp = t / 32;
    if (t == 0) { init(&full, 32); init(&is_free, 32); }
    __syncthreads();
    AFTER(if (warp == 2) return;)
    for (int i = 0; i < 6; i++) {
        if (warp == 0) {
            if (i) wait(&is_free, i - 1 & 1);
            data[t] = in[32 * i + t];
            arrive(&full);
            continue;
        }
        wait(&full, i & 1);
        if (warp == 1) {
            out[32 * i + t] = data[t - 32];
            arrive(&is_free);
        }
    }
}
