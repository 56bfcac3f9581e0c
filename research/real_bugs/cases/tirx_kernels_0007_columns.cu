// source: mlc-ai/TIRx-kernels#7, 2026-07-24
// link: https://github.com/mlc-ai/TIRx-kernels/pull/7
// wrong: operand columns of tensor memory are written for the next block while the last MMA may still read them
// finds: race: tcgen05
// launch: threads=128
KERNEL(128) {
    __shared__ alignas(1024) u32 b[2048];
    __shared__ u64 done[2];
    __shared__ u32 address;
    const u32 t = threadIdx.x;
    for (int i = t; i < 2048; i += 128) b[i] = 0;
    if (t == 0) { init(&done[0], 1); init(&done[1], 1); }
    if (t < 32) alloc(&address, 128);
    fence_async();
    before_sync();
    __syncthreads();
    after_sync();
    const u32 d = address, a = d + 64;
    for (int block = 0; block < 2; block++) {
        AFTER(if (block) { wait(&done[0], 0); after_sync(); })
        for (int c = 0; c < 8; c++) st_tmem(a + c, block);
        wait_st();
        before_sync();
        __syncthreads();
        after_sync();
        if (t == 0) {
            mma_ts(d, a, desc(b), block);
            commit(&done[block]);
        }
    }
    wait(&done[0], 0);
    wait(&done[1], 0);
    after_sync();
    out[t] = read_tmem(d);
    free_all(d, 128);
}
