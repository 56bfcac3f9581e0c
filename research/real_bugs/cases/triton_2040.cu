// source: triton-lang/triton#2040, 2023-08-07
// link: https://github.com/triton-lang/triton/pull/2040
// wrong: no barrier between the mbarrier.init by thread 0 and the arrivals of the others
// finds: mbarrier: nothing orders this after its mbarrier.init
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ u64 full;
    if (threadIdx.x == 0) init(&full, 128);
    AFTER(__syncthreads();)
    arrive(&full);
    wait(&full, 0);
}
