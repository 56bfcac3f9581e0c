// source: mlc-ai/TIRx-kernels#161, 2026-09-05
// link: https://github.com/mlc-ai/TIRx-kernels/pull/161
// wrong: the barrier before the epilogue counts the product, and not the two score warps that publish row state
// finds: race:
// launch: threads=128
KERNEL(128) {
    __shared__ u64 o_full;
    __shared__ float state[64];
    const u32 t = threadIdx.x, warp = t / 32;
    if (t == 0) init(&o_full, 1 AFTER(+ 2));
    __syncthreads();
    if (warp == 0 && elect()) arrive(&o_full);  // the product is complete
    if (warp == 1 || warp == 2) {
        state[t - 32] = in[t];
        __syncwarp();
        AFTER(if (elect()) arrive(&o_full);)
    }
    if (warp == 3) {
        wait(&o_full, 0);
        out[t] = state[t - 96] * state[t - 64];
    }
}
