// source: NVIDIA/cuml#6578, 2025-04-23
// link: https://github.com/NVIDIA/cuml/pull/6578
// wrong: other threads begin the next iteration and overwrite what thread 0 is still adding up
// finds: race:
// launch: threads=64 target=sm_80
KERNEL(64) {
    __shared__ float parts[64];
    const u32 t = threadIdx.x;
    for (int i = 0; i < 3; i++) {
        parts[t] = in[64 * i + t];
        __syncthreads();
        if (t == 0) {
            float sum = 0;
            for (int k = 0; k < 64; k++) sum += parts[k];
            out[i] = sum;
        }
        AFTER(__syncthreads();)
    }
}
