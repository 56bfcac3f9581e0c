// source: triton-lang/triton#3858, 2024-05-08
// link: https://github.com/triton-lang/triton/pull/3858
// wrong: the memory of an mbarrier is used for data with no mbarrier.inval before
// finds: mbarrier review: written to while it is in use
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ alignas(16) float scratch[64];
    u64 *done = (u64 *)scratch;
    const u32 t = threadIdx.x;
    if (t == 0) init(done, 64);
    __syncthreads();
    arrive(done);
    wait(done, 0);
    __syncthreads();
    AFTER(if (t == 0) inval(done);)
    AFTER(__syncthreads();)
    scratch[t] = in[t];
    __syncthreads();
    out[t] = scratch[63 - t];
}
