// source: facebookexperimental/triton#908, 2026-02-15
// link: https://github.com/facebookexperimental/triton/pull/908
// wrong: a multicast answer completes on a barrier of each CTA, but only CTA 0 expects its bytes
// finds: deadlock|tx-count:
// launch: threads=32 cluster=2 target=sm_90a
KERNEL(32) {
    __shared__ alignas(128) float data[1024];
    __shared__ u64 full;
    const u32 t = threadIdx.x;
    if (t == 0) { init(&full, 1); fence_mbarrier_init(); }
    cluster_sync();
    if (t == 0 BEFORE(&& cta_rank() == 0)) expect(&full, 4096);
    if (t == 0 && cta_rank() == 0) load_multicast(data, &row, 0, 0, &full, 3);
    __syncwarp();
    wait(&full, 0);
    out[32 * cta_rank() + t] = data[t];
    cluster_sync();
}
