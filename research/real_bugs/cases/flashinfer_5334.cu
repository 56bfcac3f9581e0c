// source: flashinfer-ai/flashinfer#5334, 2026-09-18
// link: https://github.com/flashinfer-ai/flashinfer/issues/5334
// wrong: a stage of tensor memory is released while tcgen05.ld may still read it, and the next MMA overwrites it
// finds: race|async-pending:
// launch: threads=160
KERNEL(160) {
    __shared__ alignas(1024) u32 a[4096], b[2048];
    __shared__ u64 full, empty;
    __shared__ u32 address;
    const u32 t = threadIdx.x;
    for (int i = t; i < 4096; i += 160) a[i] = 0;
    for (int i = t; i < 2048; i += 160) b[i] = 0;
    fence_async();
    if (t == 0) { init(&full, 1); init(&empty, 128); fence_mbarrier_init(); }
    if (t < 32) alloc(&address, 64);
    before_sync();
    __syncthreads();
    after_sync();
    const u32 d = address;
    for (int i = 0; i < 2; i++) {
        if (t == 128) {
            wait(&empty, (i & 1) ^ 1);
            after_sync();
            mma(d, desc(a), desc(b), 0);
            commit(&full);
        }
        if (t < 128) {
            wait(&full, i & 1);
            after_sync();
            const float v = ld_tmem(d);
            AFTER(wait_ld();)
            before_sync();
            arrive(&empty);
            BEFORE(wait_ld();)
            out[128 * i + t] = v;
        }
    }
    free_all(d, 64);
}
