// source: NVIDIA/cutlass#2230, 2025-04-08
// link: https://github.com/NVIDIA/cutlass/issues/2230
// wrong: the accumulator lies in tensor memory that was never allocated
// finds: tmem-alloc:
// launch: threads=128
KERNEL(128) {
    __shared__ u32 address;
    const u32 t = threadIdx.x;
    AFTER(if (t < 32) alloc(&address, 64);)
    BEFORE(if (t == 0) address = 0;)
    before_sync();
    __syncthreads();
    after_sync();
    const u32 d = address;
    st_tmem(d, t);
    wait_st();
    out[t] = read_tmem(d);
    AFTER(free_all(d, 64);)
}
