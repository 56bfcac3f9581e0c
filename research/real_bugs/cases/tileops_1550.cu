// source: tile-ai/TileOPs#1550, 2026-06-02
// link: https://github.com/tile-ai/TileOPs/pull/1550
// wrong: the next wave refills the staging tile while the last TMA store may still read it
// finds: race:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ alignas(128) float c[1024];
    const u32 t = threadIdx.x;
    for (int wave = 0; wave < 3; wave++) {
        for (int i = t; i < 1024; i += 128) c[i] = in[1024 * wave + i];
        fence_async();
        bar(1, 128);
        if (t == 0) {
            store_tile(&store, 32 * wave, 0, c);
            bulk_commit();
            bulk_wait_read<0>();
        }
        AFTER(bar(1, 128);)
    }
    if (t == 0) bulk_wait<0>();
}
