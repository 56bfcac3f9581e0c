// source: tile-ai/tilelang#2927, 2026-08-10
// link: https://github.com/tile-ai/tilelang/issues/2927
// wrong: the parity of a wait counts iterations, although each iteration has a barrier of its own
// finds: deadlock: waits for phase 1
// launch: threads=32 target=sm_90a
KERNEL(32) {
    __shared__ alignas(128) float data[4][1024];
    __shared__ u64 full[4];
    const u32 t = threadIdx.x;
    if (t == 0) { for (int s = 0; s < 4; s++) init(&full[s], 1); fence_mbarrier_init(); }
    __syncwarp();
    for (int s = 0; s < 4; s++) {
        if (t == 0) {
            expect(&full[s], 4096);
            load(data[s], &row, 32 * s, 0, &full[s]);
        }
        wait(&full[s], BEFORE(s & 1) AFTER(0));
        out[32 * s + t] = data[s][t];
    }
}
