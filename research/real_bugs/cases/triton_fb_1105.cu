// source: facebookexperimental/triton#1105, 2026-03-18
// link: https://github.com/facebookexperimental/triton/pull/1105
// wrong: no cluster barrier before the end, and a CTA writes into a peer that may have left
// finds: cluster:
// launch: threads=32 cluster=2 target=sm_90a
KERNEL(32) {
    __shared__ float box[32];
    const u32 t = threadIdx.x;
    box[t] = 0;
    cluster_sync();
    st_peer(mapa(&box[t], cta_rank() ^ 1), in[t]);
    AFTER(cluster_sync();)
}
