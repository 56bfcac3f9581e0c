// source: tile-ai/tilelang#3087, 2026-08-25
// link: https://github.com/tile-ai/tilelang/pull/3087
// wrong: the wait for a product takes its parity from a ring of three stages, but its barrier has one slot
// finds: race|deadlock:
// launch: threads=128
KERNEL(128) {
    __shared__ alignas(1024) u32 b[2048];
    __shared__ alignas(1024) u32 a[2][4096];
    __shared__ u64 full[2], done;
    __shared__ u32 address;
    const u32 t = threadIdx.x;
    for (int i = t; i < 2048; i += 128) b[i] = 0;
    fence_async();
    if (t == 0) { init(&full[0], 1); init(&full[1], 1); init(&done, 1); fence_mbarrier_init(); }
    if (t < 32) alloc(&address, 64);
    before_sync();
    __syncthreads();
    after_sync();
    const u32 d = address;
    if (t == 0) {
        for (int k = 0; k < 6; k++) {
            expect(&full[k & 1], 16384);
            load(a[k & 1], &tile, 64 * k, 0, &full[k & 1]);
            wait(&full[k & 1], k / 2 & 1);
            after_sync();
            mma(d, desc(a[k & 1]), desc(b), k > 0);
            commit(&done);
            wait(&done, BEFORE(k / 3 & 1) AFTER(k & 1));
        }
        BEFORE(wait(&done, 1);)
    }
    before_sync();
    __syncthreads();
    after_sync();
    out[t] = read_tmem(d);
    free_all(d, 64);
}
