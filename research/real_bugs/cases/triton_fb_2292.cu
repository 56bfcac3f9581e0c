// source: facebookexperimental/triton#2292, 2026-07-22
// link: https://github.com/facebookexperimental/triton/pull/2292
// wrong: a CTA stores into its peer's shared memory before it knows that the peer runs and has set that up
// finds: race|cluster:
// launch: threads=32 cluster=2 target=sm_90a
KERNEL(32) {
    __shared__ float mailbox[32];
    const u32 t = threadIdx.x;
    mailbox[t] = -1;
    AFTER(cluster_sync();)
    st_peer(mapa(&mailbox[t], cta_rank() ^ 1), t + 1);
    cluster_sync();
    out[32 * cta_rank() + t] = mailbox[t];
}
