// source: flashinfer-ai/flashinfer#3624, 2026-06-12
// link: https://github.com/flashinfer-ai/flashinfer/pull/3624
// wrong: the scratch of a block reduction is used again by the next iteration with no barrier in between
// finds: race:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ float scratch[4];
    const u32 t = threadIdx.x;
    float most = -1e30f;
    for (int i = 0; i < 3; i++) {
        float v = in[128 * i + t];
        for (int s = 16; s; s /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, s));
        if (t % 32 == 0) scratch[t / 32] = v;
        __syncthreads();
        for (int w = 0; w < 4; w++) most = fmaxf(most, scratch[w]);
        AFTER(__syncthreads();)
    }
    out[t] = most;
}
