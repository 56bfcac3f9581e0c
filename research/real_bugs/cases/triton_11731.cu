// source: triton-lang/triton#11731, 2026-09-12
// link: https://github.com/triton-lang/triton/pull/11731
// wrong: CTA 0 may leave while its peers still read a result from its shared memory
// finds: cluster:
// launch: threads=32 cluster=4 target=sm_90a
KERNEL(32) {
    __shared__ float result;
    const u32 t = threadIdx.x;
    if (cta_rank() == 0 && t == 0) result = in[0];
    cluster_sync();
    out[32 * cta_rank() + t] = ld_peer(mapa(&result, 0));
    AFTER(cluster_sync();)
}
