// source: MoonshotAI/FlashKDA#25, 2026-07-28
// link: https://github.com/MoonshotAI/FlashKDA/pull/25
// wrong: only __syncthreads stands between converted states in shared memory and the TMA store that reads them
// finds: proxy-fence:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ alignas(128) float state[1024];
    const u32 t = threadIdx.x;
    for (int i = t; i < 1024; i += 128) state[i] = 2 * in[i];
    AFTER(fence_async();)
    __syncthreads();
    if (t == 0) {
        store_tile(&store, 32, 32, state);
        bulk_commit();
        bulk_wait<0>();
    }
}
