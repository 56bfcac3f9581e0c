// source: mlc-ai/TIRx-kernels#42, 2026-08-14
// link: https://github.com/mlc-ai/TIRx-kernels/pull/42
// wrong: CTA 0 publishes the next phase of a barrier of both CTAs before lagging warps have seen the last one
// finds: race:
// launch: threads=160 cluster=2
KERNEL(160) {
    __shared__ u64 full, consumed;
    __shared__ float slot;
    const u32 t = threadIdx.x, warp = t / 32;
    if (t == 0) { init(&full, 1); init(&consumed, 8); fence_mbarrier_init(); }
    cluster_sync();
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        if (warp == 4 && cta_rank() == 0 && elect()) {
            AFTER(wait_cluster(&consumed, (i & 1) ^ 1);)
            for (u32 cta = 0; cta < 2; cta++) {
                st_peer(mapa(&slot, cta), in[i]);
                arrive_peer(mapa(&full, cta));
            }
        }
        if (warp < 4) {
            wait_cluster(&full, i & 1);
            sum += *(volatile float *)&slot;
            __syncwarp();
            if (elect()) arrive_peer(mapa(&consumed, 0));
        }
    }
    if (warp < 4) out[128 * cta_rank() + t] = sum;
    cluster_sync();
}
