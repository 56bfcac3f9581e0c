// source: facebookexperimental/triton#462, 2025-10-13
// link: https://github.com/facebookexperimental/triton/pull/462
// wrong: two mbarriers get the same place, so a live one is initialised again with no mbarrier.inval
// finds: mbarrier review:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ u64 place;
    const u32 t = threadIdx.x;
    if (t == 0) init(&place, 2);
    __syncthreads();
    if (t == 0) {
        AFTER(inval(&place);)
        init(&place, 1);
    }
    __syncthreads();
    if (t == 0) arrive(&place);
    wait(&place, 0);
}
