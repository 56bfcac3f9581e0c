// source: ggml-org/llama.cpp#24360, 2026-06-09
// link: https://github.com/ggml-org/llama.cpp/pull/24360
// wrong: no barrier at the end of an iteration of a scan, so its inputs are overwritten while others read them
// finds: race:
// launch: threads=64 target=sm_80
KERNEL(64) {
    __shared__ float b[16], c[16];
    const u32 t = threadIdx.x;
    float state = 0;
    for (int i = 0; i < 3; i++) {
        if (t < 16) b[t] = in[32 * i + t];
        else if (t < 32) c[t - 16] = in[32 * i + t];
        __syncthreads();
        float y = 0;
        for (int n = 0; n < 16; n++) { state += b[n]; y += state * c[n]; }
        out[64 * i + t] = y;
        AFTER(__syncthreads();)
    }
}
