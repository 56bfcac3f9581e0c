// source: mlc-ai/TIRx-kernels#7, 2026-07-24
// link: https://github.com/mlc-ai/TIRx-kernels/pull/7
// wrong: tcgen05.alloc stands after the kernel's only barrier, so other warps read its address with nothing in between
// finds: race:
// open: the tensor memory address that was read too early comes first; the race stands under it
// launch: threads=128
KERNEL(128) {
    __shared__ u32 address;
    const u32 t = threadIdx.x;
    BEFORE(__syncthreads();)
    if (t < 32) alloc(&address, 64);
    AFTER(before_sync(); __syncthreads(); after_sync();)
    const u32 d = *(volatile u32 *)&address;
    st_tmem(d, t);
    wait_st();
    out[t] = read_tmem(d);
    free_all(d, 64);
}
