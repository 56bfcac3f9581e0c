// source: tile-ai/tilelang#2674, 2026-07-19
// link: https://github.com/tile-ai/tilelang/pull/2674
// wrong: phases of the ring start anew with every tile, although the loop over K leaves it in the middle
// finds: deadlock|race|mbarrier:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ alignas(128) float data[2][1024];
    __shared__ u64 full[2], empty[2];
    const u32 t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < 2; s++) { init(&full[s], 1); init(&empty[s], 32); }
        fence_mbarrier_init();
    }
    __syncthreads();
    for (int tile_of = 0, done = 0; tile_of < 3; tile_of++) {
        BEFORE(done = 0;)
        for (int k = 0; k < 3; k++, done++) {
            const int s = done % 2, phase = done / 2 & 1;
            if (t == 0) {
                wait(&empty[s], phase ^ 1);
                expect(&full[s], 4096);
                load(data[s], &row, 32 * k, 32 * tile_of, &full[s]);
            }
            if (t >= 32) {
                wait(&full[s], phase);
                out[32 * (3 * tile_of + k) + t - 32] = data[s][t];
                arrive(&empty[s]);
            }
        }
    }
}
