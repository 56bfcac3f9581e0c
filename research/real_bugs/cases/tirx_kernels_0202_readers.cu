// source: mlc-ai/TIRx-kernels#202, 2026-09-16
// link: https://github.com/mlc-ai/TIRx-kernels/pull/202
// wrong: a slot is refilled once one of the three warps that read its metadata has released it
// finds: race:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ u64 full, empty;
    __shared__ float slot[32];
    const u32 t = threadIdx.x, warp = t / 32;
    if (t == 0) { init(&full, 32); init(&empty, BEFORE(1) AFTER(3)); }
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        if (warp == 3) {
            wait(&empty, (i & 1) ^ 1);
            slot[t - 96] = in[32 * i + t];
            arrive(&full);
        } else {
            wait(&full, i & 1);
            out[96 * i + t] = slot[t % 32];
            __syncwarp();
            if (BEFORE(warp == 0 &&) elect()) arrive(&empty);
        }
    }
}
