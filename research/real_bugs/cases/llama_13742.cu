// source: ggml-org/llama.cpp#13742, 2025-05-24
// link: https://github.com/ggml-org/llama.cpp/pull/13742
// wrong: warps decide from shared memory whether to skip a tile while faster ones write the next mask over it
// finds: race:
// open: the barrier at which the warps part comes first; the race that parts them stands under it
// launch: threads=128 target=sm_80
KERNEL(128) {
    __shared__ float mask[128];
    const u32 t = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 3; k++) {
        mask[t] = k == 0 ? -1e30f : in[128 * k + t];
        __syncthreads();
        bool skip = true;
        for (int i = t % 32; i < 128; i += 32) skip &= mask[i] < -1e20f;
        AFTER(__syncthreads();)
        if (__all_sync(~0u, skip)) continue;
        sum += mask[t];
        __syncthreads();
    }
    out[t] = sum;
}
