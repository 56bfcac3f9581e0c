// source: triton-lang/triton#10055, 2026-04-16
// link: https://github.com/triton-lang/triton/pull/10055
// wrong: scratch in global memory is written by some threads of a CTA and read by others with no barrier
// finds: race:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    const u32 t = threadIdx.x;
    words[t] = __float_as_uint(in[t]);
    AFTER(__syncthreads();)
    out[t] = __uint_as_float(((volatile u32 *)words)[63 - t]);
}
