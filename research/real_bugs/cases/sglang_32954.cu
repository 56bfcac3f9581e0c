// source: sgl-project/sglang#32954, 2026-07-30
// link: https://github.com/sgl-project/sglang/pull/32954
// wrong: a CTA of a pair retires while its peer still sends arrivals to its mbarriers
// finds: cluster:
// launch: threads=128 cluster=2
KERNEL(128) {
    __shared__ alignas(1024) u32 a[4096], b[1024];
    __shared__ u64 done, released;
    __shared__ u32 address;
    const u32 t = threadIdx.x;
    for (int i = t; i < 4096; i += 128) a[i] = 0;
    for (int i = t; i < 1024; i += 128) b[i] = 0;
    fence_async();
    if (t == 0) { init(&done, 1); init(&released, 256); fence_mbarrier_init(); }
    if (t < 32) alloc_pair(&address, 64);
    before_sync();
    cluster_sync();
    after_sync();
    const u32 d = address;
    if (t == 0 && cta_rank() == 0) {
        mma_pair(d, desc(a), desc(b), 0);
        commit_pair(&done, 3);
    }
    wait(&done, 0);
    after_sync();
    out[128 * cta_rank() + t] = read_tmem(d);
    before_sync();
    cluster_sync();
    after_sync();
    if (t < 32) dealloc_pair(d, 64);
    arrive_peer(mapa(&released, 0));
    AFTER(cluster_sync();)
}
