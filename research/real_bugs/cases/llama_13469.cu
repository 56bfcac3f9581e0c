// source: ggml-org/llama.cpp#13469, 2025-05-12
// link: https://github.com/ggml-org/llama.cpp/pull/13469
// wrong: a barrier that some warps skip pairs with another one, so that warps run a step apart
// finds: race|deadlock|collective:
// launch: threads=128 target=sm_80
KERNEL(128) {
    __shared__ float data[128];
    const u32 t = threadIdx.x;
    for (int i = 0; i < 2; i++) {
        data[t] = in[128 * i + t];
        BEFORE(if (t < 64)) __syncthreads();
        out[128 * i + t] = data[127 - t];
        __syncthreads();
    }
}
