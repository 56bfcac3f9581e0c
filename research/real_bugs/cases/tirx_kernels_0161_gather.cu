// source: mlc-ai/TIRx-kernels#161, 2026-09-05
// link: https://github.com/mlc-ai/TIRx-kernels/pull/161
// wrong: rows gathered by threads are handed to an MMA with no fence.proxy.async
// finds: proxy-fence review: fence.proxy.async
// launch: threads=160
KERNEL(160) {
    __shared__ alignas(1024) u32 a[4096], b[2048];
    __shared__ u64 full, done;
    __shared__ u32 address;
    const u32 t = threadIdx.x;
    for (int i = t; i < 2048; i += 160) b[i] = 0;
    fence_async();
    if (t == 0) { init(&full, 128); init(&done, 1); }
    if (t < 32) alloc(&address, 64);
    before_sync();
    __syncthreads();
    after_sync();
    const u32 d = address;
    if (t < 128) {
        for (int i = 0; i < 32; i++) a[32 * t + i] = 0;
        AFTER(fence_async();)
        arrive(&full);
    } else if (elect()) {
        wait(&full, 0);
        after_sync();
        mma(d, desc(a), desc(b), 0);
        commit(&done);
    }
    if (t < 128) {
        wait(&done, 0);
        after_sync();
        out[t] = read_tmem(d);
    }
    free_all(d, 64);
}
