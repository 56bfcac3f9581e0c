// source: NVIDIA/cutlass#2364, 2025-06-04
// link: https://github.com/NVIDIA/cutlass/issues/2364
// wrong: expect_tx is taken for the initialisation of an mbarrier, which it is not
// finds: mbarrier:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ alignas(128) float data[1024];
    __shared__ u64 full;
    const u32 t = threadIdx.x;
    if (t == 0) {
        AFTER(init(&full, 1);)
        AFTER(fence_mbarrier_init();)
        expect(&full, 4096);
        load(data, &row, 0, 0, &full);
    }
    __syncthreads();
    wait(&full, 0);
    out[t] = data[t];
}
