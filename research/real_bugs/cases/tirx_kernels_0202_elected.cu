// source: mlc-ai/TIRx-kernels#202, 2026-09-16
// link: https://github.com/mlc-ai/TIRx-kernels/pull/202
// wrong: one elected lane publishes what its warp has written, before the other lanes have joined it
// finds: race:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ u64 full;
    __shared__ float data[32];
    const u32 t = threadIdx.x;
    if (t == 0) init(&full, 1);
    __syncthreads();
    if (t < 32) {
        data[t] = in[t];
        AFTER(__syncwarp();)
        if (t == 0) arrive(&full);
    } else {
        wait(&full, 0);
        out[t] = data[63 - t];
    }
}
