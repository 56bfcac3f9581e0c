// source: NVlabs/cuda-oxide#145, 2026-06-08
// link: https://github.com/NVlabs/cuda-oxide/pull/145
// wrong: the optimiser moves __syncthreads under a condition that only thread 0 fulfils
// finds: collective|deadlock:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ float data[64];
    const u32 t = threadIdx.x;
    data[t] = in[t];
    if (t == 0) {
        BEFORE(ASM("bar.sync 0;" ::: "memory");)
        atomicAdd(words, 1);
        BEFORE(ASM("bar.sync 1;" ::: "memory");)
    } else {
        BEFORE(ASM("bar.sync 1;" ::: "memory");)
    }
    AFTER(__syncthreads();)
    out[t] = data[63 - t];
}
