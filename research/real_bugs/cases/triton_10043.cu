// source: triton-lang/triton#10043, 2026-04-15
// link: https://github.com/triton-lang/triton/pull/10043
// wrong: one partition stores to tensor memory, another one loads from it, and nothing orders the two
// finds: race: tensor memory
// launch: threads=256
KERNEL(256) {
    __shared__ u32 address;
    const u32 t = threadIdx.x;
    if (t < 32) alloc(&address, 64);
    before_sync();
    __syncthreads();
    after_sync();
    const u32 d = address;
    st_tmem(d + t / 128, t);
    wait_st();
    before_sync();
    __syncthreads();
    after_sync();
    if (t < 128) {
        st_tmem(d, 2 * t);
        wait_st();
        before_sync();
        AFTER(bar_arrive(1, 256);)
    } else {
        AFTER(bar(1, 256);)
        after_sync();
        out[t - 128] = read_tmem(d);
    }
    free_all(d, 64);
}
