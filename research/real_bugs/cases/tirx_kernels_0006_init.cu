// source: mlc-ai/TIRx-kernels#6, 2026-07-22
// link: https://github.com/mlc-ai/TIRx-kernels/pull/6
// wrong: the second warp of every warpgroup, not of the first alone, initialises the CTA's mbarriers
// finds: mbarrier review: is initialised by several threads
// launch: threads=256
KERNEL(256) {
    __shared__ u64 full;
    const u32 warp = threadIdx.x / 32;
    if (warp % 4 == 1 AFTER(&& warp < 4) && elect()) init(&full, 1);
    __syncthreads();
    if (threadIdx.x == 0) arrive(&full);
    wait(&full, 0);
}
