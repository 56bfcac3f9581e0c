// source: triton-lang/triton#10352, 2026-05-21
// link: https://github.com/triton-lang/triton/pull/10352
// wrong: reused shared memory is poisoned with NaNs while other warps still read what it held
// finds: race:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ float data[128];
    const u32 t = threadIdx.x;
    data[t] = in[t];
    __syncthreads();
    const float mine = data[127 - t];
    AFTER(__syncthreads();)
    data[t] = __uint_as_float(0x7FFFFFFF);
    __syncthreads();
    out[t] = mine + data[t ^ 1];
}
