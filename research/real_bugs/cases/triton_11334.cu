// source: triton-lang/triton#11334, 2026-08-17
// link: https://github.com/triton-lang/triton/pull/11334
// wrong: a thread runs ahead and overwrites the phase of a barrier before another warp has read it
// finds: race:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ u64 meet;
    __shared__ u32 phase;
    const u32 t = threadIdx.x;
    if (t == 0) { init(&meet, 2); phase = 0; }
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        BEFORE(if (t % 32 == 0) arrive(&meet);)
        const u32 mine = phase;
        AFTER(__syncwarp();)
        AFTER(if (t % 32 == 0) arrive(&meet);)
        wait(&meet, mine);
        if (t == 0) phase = mine ^ 1;
        __syncthreads();
    }
}
