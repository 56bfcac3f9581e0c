// source: mlc-ai/TIRx-kernels#151, 2026-09-03
// link: https://github.com/mlc-ai/TIRx-kernels/pull/151
// wrong: the reduction of the last iteration is not ordered before the next one overwrites what it reads
// finds: race:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ float partial[128];
    const u32 t = threadIdx.x;
    for (int chunk = 3; chunk >= 0; chunk--) {
        partial[t] = in[128 * chunk + t];
        __syncthreads();
        if (t < 32) {
            float sum = 0;
            for (int i = 0; i < 4; i++) sum += partial[32 * i + t];
            out[32 * chunk + t] = sum;
        }
        AFTER(if (chunk > 0) __syncthreads();)
    }
}
