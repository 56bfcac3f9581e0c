// source: MoonshotAI/FlashKDA#25, 2026-07-28
// link: https://github.com/MoonshotAI/FlashKDA/pull/25
// wrong: the only fence is in the main loop, which an empty sequence never enters
// finds: proxy-fence:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ alignas(128) float state[1024];
    const u32 t = threadIdx.x, tiles = words[0];
    for (int i = t; i < 1024; i += 64) state[i] = 0;
    AFTER(fence_async();)
    __syncthreads();
    for (u32 k = 0; k < tiles; k++) {
        state[t] += in[t];
        fence_async();
        __syncthreads();
    }
    if (t == 0) {
        store_tile(&store, 0, 0, state);
        bulk_commit();
        bulk_wait<0>();
    }
}
