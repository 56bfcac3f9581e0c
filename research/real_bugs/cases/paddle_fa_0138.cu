// source: PaddlePaddle/flash-attention#138, 2026-04-21
// link: https://github.com/PaddlePaddle/flash-attention/pull/138
// wrong: the MMA warp frees tensor memory that the reduce warps may still be reading
// finds: race|tmem-alloc:
// launch: threads=160
KERNEL(160) {
    __shared__ u32 address;
    __shared__ u64 reduced;
    const u32 t = threadIdx.x;
    if (t == 0) init(&reduced, 128);
    if (t >= 128) alloc(&address, 64);
    before_sync();
    __syncthreads();
    after_sync();
    const u32 d = address;
    if (t < 128) {
        st_tmem(d, t);
        wait_st();
        out[t] = read_tmem(d);
        before_sync();
        AFTER(arrive(&reduced);)
    } else {
        AFTER(wait(&reduced, 0);)
        AFTER(after_sync();)
        dealloc(d, 64);
    }
}
