// source: mlc-ai/TIRx-kernels#93, 2026-08-21
// link: https://github.com/mlc-ai/TIRx-kernels/pull/93
// wrong: (the barrier that its clean-up must keep) bins are folded into global memory before the CTA has filled them
// finds: race: no barrier between them
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ u32 bins[128];
    const u32 t = threadIdx.x;
    bins[t ^ 33] = __float_as_uint(in[t]) & 255;
    AFTER(__syncthreads();)
    atomicAdd(&words[t], bins[t]);
}
