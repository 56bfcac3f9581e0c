// source: mlc-ai/TIRx-kernels#151, 2026-09-03
// link: https://github.com/mlc-ai/TIRx-kernels/pull/151
// wrong: a warpgroup reuses the tile of the last product as scratch before all of its threads have read the tile
// finds: race:
// launch: threads=256 target=sm_90a
KERNEL(256) {
    __shared__ float tile_of[128];
    const u32 t = threadIdx.x;
    if (t >= 128) return;
    tile_of[t] = in[t];
    bar(1, 128);
    const float mine = tile_of[127 - t];
    AFTER(bar(1, 128);)
    tile_of[t] = 2 * mine;  // partial sums
    bar(1, 128);
    out[t] = tile_of[t ^ 64];
}
