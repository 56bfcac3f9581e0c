// source: NVIDIA/cutlass#3316, 2026-06-14
// link: https://github.com/NVIDIA/cutlass/pull/3316
// wrong: tcgen05.alloc of a pair of CTAs is issued before the peer is known to run and has set up its barriers
// finds: cluster|race|mbarrier|tmem-alloc:
// launch: threads=64 cluster=2
KERNEL(64) {
    __shared__ u32 address;
    __shared__ u64 may_free;
    const u32 t = threadIdx.x;
    if (t == 0) { init(&may_free, 1); fence_mbarrier_init(); }
    BEFORE(__syncthreads();)
    AFTER(cluster_sync();)
    if (t < 32) {
        alloc_pair(&address, 64);
        if (elect()) arrive_peer(mapa(&may_free, cta_rank() ^ 1));
        wait_cluster(&may_free, 0);
        dealloc_pair(address, 64);
    }
    AFTER(cluster_sync();)
}
