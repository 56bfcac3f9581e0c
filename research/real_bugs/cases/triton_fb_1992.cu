// source: facebookexperimental/triton#1992, 2026-07-10
// link: https://github.com/facebookexperimental/triton/pull/1992
// wrong: warps of one task store P over columns that alias S, which other warps of the task may not have read yet
// finds: race: tensor memory
// launch: threads=256
KERNEL(256) {
    __shared__ u32 base;
    const u32 t = threadIdx.x, warp = t / 32;
    if (warp == 0) alloc(&base, 32);
    before_sync();
    __syncthreads();
    after_sync();
    const u32 a = base, half = warp / 4;
    st_tmem(a + half, t);
    wait_st();
    const float s = read_tmem(a + half);
    AFTER(before_sync();)
    AFTER(__syncthreads();)
    AFTER(after_sync();)
    st_tmem(a + 1 - half, __float_as_uint(s * 2));
    wait_st();
    before_sync();
    __syncthreads();
    after_sync();
    out[t] = read_tmem(a + half);
    free_all(a, 32);
}
