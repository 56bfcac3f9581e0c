// source: NVIDIA/cutlass#3324, 2026-06-17
// link: https://github.com/NVIDIA/cutlass/issues/3324
// wrong: the peer announces its shared memory with an arrival of CTA scope
// finds: race:
// launch: threads=32 cluster=2 target=sm_90a
KERNEL(32) {
    __shared__ float data[32];
    __shared__ u64 full;
    const u32 t = threadIdx.x;
    if (t == 0) { init(&full, 32); fence_mbarrier_init(); }
    cluster_sync();
    if (cta_rank() == 1) {
        data[t] = in[t];
        BEFORE(arrive_peer_cta_scope(mapa(&full, 0));)
        AFTER(arrive_peer(mapa(&full, 0));)
    } else {
        wait_cluster(&full, 0);
        out[t] = ld_peer(mapa(&data[31 - t], 1));
    }
    cluster_sync();
}
