// source: NVIDIA/TensorRT-LLM#18339, 2026-08-28
// link: https://github.com/NVIDIA/TensorRT-LLM/pull/18339
// wrong: thread 0 rewrites the bracket that a straggling warp has yet to read to decide whether to meet at a barrier
// finds: race|deadlock|collective:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ float bracket[2];
    const u32 t = threadIdx.x;
    if (t == 0) bracket[0] = bracket[1] = in[0];
    __syncthreads();
    const float low = *(volatile float *)&bracket[0], high = *(volatile float *)&bracket[1];
    AFTER(__syncthreads();)
    if (low == high) {
        if (t == 0) { bracket[0] = low - 1; bracket[1] = high + 1; }
        __syncthreads();
    }
    out[t] = bracket[1] - bracket[0];
}
