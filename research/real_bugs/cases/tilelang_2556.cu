// source: tile-ai/tilelang#2556, 2026-07-08
// link: https://github.com/tile-ai/tilelang/issues/2556
// wrong: the compiler drops the barrier in code that 48 of 64 threads execute
// finds: race:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ float data[64];
    const u32 t = threadIdx.x;
    if (t < 48) data[t] = in[t];
    AFTER(__syncthreads();)
    if (t < 48) out[t] = data[47 - t];
}
