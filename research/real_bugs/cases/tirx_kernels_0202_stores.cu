// source: mlc-ai/TIRx-kernels#202, 2026-09-16
// link: https://github.com/mlc-ai/TIRx-kernels/pull/202
// wrong: all 32 lanes of a warp issue the TMA store of one tile
// finds: illegal review: issued by 32 lanes
// launch: threads=32 target=sm_90a
KERNEL(32) {
    __shared__ alignas(128) float data[32][32];
    const u32 t = threadIdx.x;
    for (int i = 0; i < 32; i++) data[i][t] = in[128 * i + t];
    fence_async();
    __syncwarp();
    AFTER(if (t == 0)) {
        store_tile(&store, 0, 0, data);
        bulk_commit();
        bulk_wait<0>();
    }
}
