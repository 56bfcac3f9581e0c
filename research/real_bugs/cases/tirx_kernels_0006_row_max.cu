// source: mlc-ai/TIRx-kernels#6, 2026-07-22
// link: https://github.com/mlc-ai/TIRx-kernels/pull/6
// wrong: the first iteration reads the running row maximum before anybody has written one
// finds: uninitialized review: which nobody has written
// launch: threads=128
KERNEL(128) {
    __shared__ float row_max[128];
    const u32 t = threadIdx.x;
    for (int i = 0; i < 3; i++) {
        const float last = BEFORE(row_max[t]) AFTER(i ? row_max[t] : -1e30f);
        row_max[t] = fmaxf(last, in[128 * i + t]);
        __syncthreads();
    }
    out[t] = row_max[t ^ 1];
}
