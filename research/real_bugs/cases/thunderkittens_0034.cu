// source: HazyResearch/ThunderKittens#34, 2024-05-22
// link: https://github.com/HazyResearch/ThunderKittens/pull/34
// wrong: accumulators are set by ordinary code and go into wgmma with no wgmma.fence
// finds: race|async-pending:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ alignas(1024) u32 a[4096], b[256];
    const u32 t = threadIdx.x;
    for (int i = t; i < 4096; i += 128) a[i] = 0;
    for (int i = t; i < 256; i += 128) b[i] = 0;
    fence_async();
    __syncthreads();
    float d[4] = {in[t], in[t + 1], in[t + 2], in[t + 3]};
    AFTER(wgmma_fence();)
    wgmma(d, wgmma_desc(a), wgmma_desc(b));
    wgmma_commit();
    wgmma_wait<0>();
    out[t] = d[0] + d[1] + d[2] + d[3];
}
