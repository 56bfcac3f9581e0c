// source: NVIDIA/Fuser#3865, 2025-02-10
// link: https://github.com/NVIDIA/Fuser/pull/3865
// wrong: wgmma.wait_group stands after the barrier: a warp waits for its own products, then TMA refills what others read
// finds: race:
// launch: threads=256 target=sm_90a
KERNEL(256) {
    __shared__ alignas(1024) u32 a[4096], b[256];
    __shared__ u64 full;
    const u32 t = threadIdx.x;
    for (int i = t; i < 256; i += 256) b[i] = 0;
    if (t == 0) { init(&full, 1); fence_mbarrier_init(); }
    fence_async();
    __syncthreads();
    float d[4] = {0, 0, 0, 0};
    for (int k = 0; k < 3; k++) {
        if (t == 0) { expect(&full, 16384); load(a, &tile, 64 * k, 0, &full); }
        wait(&full, k & 1);
        wgmma_fence();
        wgmma(d, wgmma_desc(a + 2048 * (t / 128)), wgmma_desc(b));
        wgmma_commit();
        BEFORE(__syncthreads();)
        wgmma_wait<0>();
        AFTER(__syncthreads();)
    }
    out[t] = d[0] + d[1] + d[2] + d[3];
}
