// source: NVIDIA/cudnn-frontend#426, 2026-07-23
// link: https://github.com/NVIDIA/cudnn-frontend/pull/426
// wrong: the load warp hands weights over before all of its lanes have stored them
// finds: race:
// launch: threads=160 target=sm_90a
KERNEL(160) {
    __shared__ float weights[64];
    __shared__ u64 full;
    const u32 t = threadIdx.x;
    if (t == 0) init(&full, 1);
    __syncthreads();
    if (t >= 128) {
        const u32 lane = t - 128;
        for (int i = lane; i < 64; i += 32) weights[i] = in[i];
        AFTER(__syncwarp();)
        if (lane == 0) arrive(&full);
    } else {
        wait(&full, 0);
        out[t] = weights[t / 2];
    }
}
