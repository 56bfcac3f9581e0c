// source: flashinfer-ai/flashinfer#4732, 2026-08-25
// link: https://github.com/flashinfer-ai/flashinfer/pull/4732
// wrong: warps arrive at a barrier for the next tile before the warp that syncs on it has seen the last one
// finds: collective|race|deadlock:
// launch: threads=96 target=sm_90a
#define ID(tile) (BEFORE(1) AFTER(1 + 4 * ((tile) & 1)))
KERNEL(96) {
    __shared__ float slots[2][32];
    __shared__ u64 full[2];
    const u32 t = threadIdx.x;
    if (t == 0) { init(&full[0], 32); init(&full[1], 32); }
    __syncthreads();
    if (t >= 64) {
        for (int tile = 0; tile < 8; tile++) {
            if (tile >= 2) bar(ID(tile - 2), 96);
            if (tile < 6) { slots[tile & 1][t - 64] = in[32 * tile + t - 64]; arrive(&full[tile & 1]); }
        }
    } else {
        for (int tile = 0; tile < 6; tile++) {
            wait(&full[tile & 1], tile / 2 & 1);
            out[64 * tile + t] = slots[tile & 1][t & 31];
            bar_arrive(ID(tile), 96);
        }
    }
}
