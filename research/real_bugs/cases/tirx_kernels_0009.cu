// source: mlc-ai/TIRx-kernels#9, 2026-07-29
// link: https://github.com/mlc-ai/TIRx-kernels/pull/9
// wrong: fence.mbarrier_init is executed by a thread that has not initialised the barriers
// finds: mbarrier review: nothing orders this after its mbarrier.init
// launch: threads=64 cluster=2
KERNEL(64) {
    __shared__ u64 full;
    const u32 t = threadIdx.x;
    if (t == 0) init(&full, 2);
    if (t == BEFORE(32) AFTER(0)) fence_mbarrier_init();
    cluster_arrive_relaxed();
    cluster_wait();
    if (t < 2) arrive_peer(mapa(&full, t));
    wait_cluster(&full, 0);
    cluster_sync();
}
