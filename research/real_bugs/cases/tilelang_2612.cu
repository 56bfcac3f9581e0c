// source: tile-ai/tilelang#2612, 2026-07-11
// link: https://github.com/tile-ai/tilelang/issues/2612
// wrong: the barrier between a store and the loads of other threads is moved in front of the guarded loop
// finds: race:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ float data[64];
    const u32 t = threadIdx.x;
    const bool active = t % 4 == 0;
    BEFORE(__syncthreads();)
    for (int i = 0; i < 2; i++) {
        if (active) data[t] = in[64 * i + t];
        AFTER(__syncthreads();)
        if (active) out[64 * i + t] = data[60 - t];
        AFTER(__syncthreads();)
    }
}
