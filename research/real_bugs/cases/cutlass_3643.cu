// source: NVIDIA/cutlass#3647, 2026-09-21
// link: https://github.com/NVIDIA/cutlass/pull/3647
// wrong: the leader multiplies what both CTAs have loaded, but nobody waits for the peer's own load
// finds: race: tcgen05.mma
// launch: threads=128 cluster=2
KERNEL(128) {
    __shared__ alignas(1024) u32 a[4096], b[1024];
    __shared__ u64 full, peer_full, done;
    __shared__ u32 address;
    const u32 t = threadIdx.x;
    for (int i = t; i < 1024; i += 128) b[i] = 0;
    fence_async();
    if (t == 0) { init(&full, 1); init(&peer_full, 1); init(&done, 1); fence_mbarrier_init(); }
    if (t < 32) alloc_pair(&address, 64);
    before_sync();
    cluster_sync();
    after_sync();
    const u32 d = address;
    if (t == 0) {
        expect(&full, 16384);
        load(a, &tile, 0, 128 * cta_rank(), &full);
        AFTER(if (cta_rank() == 1) { wait(&full, 0); arrive_peer(mapa(&peer_full, 0)); })
        if (cta_rank() == 0) {
            wait(&full, 0);
            AFTER(wait_cluster(&peer_full, 0);)
            after_sync();
            mma_pair(d, desc(a), desc(b), 0);
            commit_pair(&done, 3);
        }
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
