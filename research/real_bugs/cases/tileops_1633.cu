// source: tile-ai/TileOPs#1633, 2026-06-27
// link: https://github.com/tile-ai/TileOPs/pull/1633
// wrong: accumulators go through shared memory to the output with no barrier around it
// finds: race:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ float o[16][128];
    const u32 t = threadIdx.x;
    for (int i = 0; i < 16; i++) o[i][t ^ i] = in[128 * i + t];
    AFTER(bar(3, 128);)
    for (int i = 0; i < 16; i++) out[128 * i + t] = o[t / 8][16 * (t % 8) + i];
}
