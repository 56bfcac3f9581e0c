// source: inclusionAI/humming#56, 2026-08-10
// link: https://github.com/inclusionAI/humming/pull/56
// wrong: the leader multicasts the next tile over memory that only its own epilogue, not the peer's, has left
// finds: race:
// launch: threads=64 cluster=2 target=sm_90a
KERNEL(64) {
    __shared__ alignas(128) float data[1024];
    __shared__ u64 full, left;
    const u32 t = threadIdx.x;
    if (t == 0) { init(&full, 1); init(&left, BEFORE(64) AFTER(128)); fence_mbarrier_init(); }
    cluster_sync();
    for (int i = 0; i < 3; i++) {
        if (t == 0) expect(&full, 4096);
        AFTER(cluster_sync();)
        BEFORE(if (i == 0) cluster_sync();)
        if (t == 0 && cta_rank() == 0) {
            if (i) wait_cluster(&left, i - 1 & 1);
            load_multicast(data, &row, 32 * i, 0, &full, 3);
        }
        wait(&full, i & 1);
        out[128 * i + 64 * cta_rank() + t] = data[1023 - t];
        BEFORE(arrive(&left);)
        AFTER(arrive_peer(mapa(&left, 0));)
    }
    cluster_sync();
}
