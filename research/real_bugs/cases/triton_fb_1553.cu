// source: facebookexperimental/triton#1553, 2026-05-21
// link: https://github.com/facebookexperimental/triton/pull/1553
// wrong: the CTAs of a pair meet before, not after, they set up the accumulators that the leader's MMA adds to
// finds: race: tensor memory
// launch: threads=128 cluster=2
KERNEL(128) {
    __shared__ alignas(1024) u32 a[4096], b[1024];
    __shared__ u64 done;
    __shared__ u32 address;
    const u32 t = threadIdx.x;
    for (int i = t; i < 4096; i += 128) a[i] = 0;
    for (int i = t; i < 1024; i += 128) b[i] = 0;
    fence_async();
    if (t == 0) { init(&done, 1); fence_mbarrier_init(); }
    if (t < 32) alloc_pair(&address, 64);
    before_sync();
    cluster_sync();
    after_sync();
    const u32 d = address;
    for (int c = 0; c < 64; c++) st_tmem(d + c, 0);
    wait_st();
    before_sync();
    BEFORE(__syncthreads();)
    AFTER(cluster_sync();)
    after_sync();
    if (t == 0 && cta_rank() == 0) {
        mma_pair(d, desc(a), desc(b), 1);
        commit_pair(&done, 3);
    }
    wait(&done, 0);
    after_sync();
    out[128 * cta_rank() + t] = read_tmem(d);
    before_sync();
    cluster_sync();
    after_sync();
    if (t < 32) dealloc_pair(d, 64);
    cluster_sync();
}
