// source: NVIDIA/cutlass#2687, 2025-10-10
// link: https://github.com/NVIDIA/cutlass/pull/2687
// wrong: softmax announces its statistics in tensor memory without wait::st
// finds: race|async-pending:
// launch: threads=256
KERNEL(256) {
    __shared__ u32 address;
    __shared__ u64 ready;
    const u32 t = threadIdx.x;
    if (t == 0) init(&ready, 128);
    if (t < 32) alloc(&address, 64);
    before_sync();
    __syncthreads();
    after_sync();
    const u32 d = address;
    if (t < 128) {
        st_tmem(d, t);
        AFTER(wait_st();)
        before_sync();
        arrive(&ready);
    } else {
        wait(&ready, 0);
        after_sync();
        out[t - 128] = read_tmem(d);
    }
    BEFORE(if (t < 128) wait_st();)
    free_all(d, 64);
}
