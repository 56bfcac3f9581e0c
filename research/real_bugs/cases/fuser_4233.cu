// source: NVIDIA/Fuser#4233, 2025-04-10
// link: https://github.com/NVIDIA/Fuser/pull/4233
// wrong: every thread of the CTA issues the MMA
// finds: race|illegal|collective|mbarrier:
// launch: threads=128
KERNEL(128) {
    __shared__ alignas(1024) u32 a[4096], b[2048];
    __shared__ u64 done;
    __shared__ u32 address;
    const u32 t = threadIdx.x;
    for (int i = t; i < 4096; i += 128) a[i] = 0;
    for (int i = t; i < 2048; i += 128) b[i] = 0;
    fence_async();
    if (t == 0) { init(&done, 1); fence_mbarrier_init(); }
    if (t < 32) alloc(&address, 64);
    before_sync();
    __syncthreads();
    after_sync();
    const u32 d = address;
    AFTER(if (t == 0)) for (int k = 0; k < 2; k++) mma(d, desc(a), desc(b), k);
    __syncthreads();
    if (t == 0) commit(&done);
    wait(&done, 0);
    after_sync();
    out[t] = read_tmem(d);
    free_all(d, 64);
}
