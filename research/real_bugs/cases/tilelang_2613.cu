// source: tile-ai/tilelang#2613, 2026-07-11
// link: https://github.com/tile-ai/tilelang/issues/2613
// wrong: a tile that all threads load and two warpgroups multiply is loaded again with no barrier at the loop's end
// finds: race:
// launch: threads=256 target=sm_90a
KERNEL(256) {
    __shared__ alignas(1024) u32 a[2048], b[256];
    const u32 t = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    b[t] = 0;
    for (int k = 0; k < 3; k++) {
        for (int i = t; i < 2048; i += 256) a[i] = words[(i + k) & 1023];
        fence_async();
        __syncthreads();
        wgmma_fence();
        wgmma(d, wgmma_desc(a), wgmma_desc(b));
        wgmma_commit();
        wgmma_wait<0>();
        AFTER(__syncthreads();)
    }
    out[t] = d[0] + d[1] + d[2] + d[3];
}
