// source: NVIDIA/cutlass#3652, 2026-09-21
// link: https://github.com/NVIDIA/cutlass/pull/3652
// wrong: lanes that do not use what tcgen05.ld brings never wait for it, and their arrival lets the columns be freed
// finds: async-pending|race|tmem-alloc:
// launch: threads=160
KERNEL(160) {
    __shared__ u32 address;
    __shared__ u64 free_it;
    const u32 t = threadIdx.x;
    if (t == 0) init(&free_it, 128);
    if (t >= 128) alloc(&address, 64);
    before_sync();
    __syncthreads();
    after_sync();
    const u32 d = address;
    if (t < 128) {
        st_tmem(d, t);
        wait_st();
        const float v = ld_tmem(d);
        AFTER(wait_ld();)
        if (t % 32 < 16) out[t] = v;
        before_sync();
        arrive(&free_it);
    } else {
        wait(&free_it, 0);
        after_sync();
        dealloc(d, 64);
    }
}
