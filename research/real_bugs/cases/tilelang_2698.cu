// source: tile-ai/tilelang#2698, 2026-07-19
// link: https://github.com/tile-ai/tilelang/issues/2698
// wrong: a copy into shared memory and a fill at an offset have no barrier between them
// finds: race:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ float data[64];
    const u32 t = threadIdx.x;
    data[t] = in[t];
    AFTER(__syncthreads();)
    if (t < 54) data[t + 10] = 0;
    __syncthreads();
    out[t] = data[t];
}
