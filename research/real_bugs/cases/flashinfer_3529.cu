// source: flashinfer-ai/flashinfer#3529, 2026-06-07
// link: https://github.com/flashinfer-ai/flashinfer/pull/3529
// wrong: the next round of a top-k clears the histogram that threads still read at the end of the last one
// finds: race:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ u32 histogram[128];
    const u32 t = threadIdx.x;
    u32 remain = 100;
    for (int round = 0; round < 2; round++) {
        histogram[t] = 0;
        __syncthreads();
        atomicAdd(&histogram[words[t] & 127], 1);
        __syncthreads();
        remain -= histogram[round + 1];
        AFTER(__syncthreads();)
        if (remain == 0) break;
    }
    out[t] = remain;
}
