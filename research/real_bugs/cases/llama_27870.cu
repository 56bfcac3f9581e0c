// source: ggml-org/llama.cpp#27870, 2026-08-28
// link: https://github.com/ggml-org/llama.cpp/pull/27870
// wrong: a barrier of the whole block stands in a branch that every other warp takes
// finds: collective:
// launch: threads=128 target=sm_80
KERNEL(128) {
    __shared__ float meta[128];
    const u32 t = threadIdx.x, warp = t / 32;
    meta[t] = in[t];
    __syncthreads();
    float sum = 0;
    if (warp % 2 == 0) {
        sum = meta[t] + meta[t + 32];
        BEFORE(__syncthreads();)
        BEFORE(meta[t] = sum;)
    }
    AFTER(__syncthreads();)
    AFTER(if (warp % 2 == 0) meta[t] = sum;)
    __syncthreads();
    out[t] = meta[t & ~32];
}
