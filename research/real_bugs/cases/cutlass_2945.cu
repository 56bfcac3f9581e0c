// source: NVIDIA/cutlass#2945, 2026-01-10
// link: https://github.com/NVIDIA/cutlass/pull/2945
// wrong: while the pipeline drains the loop goes on to issue copies of tiles that do not exist and that nobody awaits
// finds: async-pending:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ alignas(128) float data[2][1024];
    __shared__ u64 full[2], empty[2];
    const u32 t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < 2; s++) { init(&full[s], 1); init(&empty[s], 64); }
        fence_mbarrier_init();
    }
    __syncthreads();
    if (t == 0)
        for (int k = 0; k < 2; k++) { expect(&full[k], 4096); load(data[k], &row, 32 * k, 0, &full[k]); }
    for (int k = 0; k < 4; k++) {
        const int s = k % 2;
        wait(&full[s], k / 2 & 1);
        out[64 * k + t] = data[s][t];
        arrive(&empty[s]);
        if (t == 0 AFTER(&& k + 2 < 4)) {
            wait(&empty[s], k / 2 & 1);
            expect(&full[s], 4096);
            load(data[s], &row, 32 * (k + 2), 0, &full[s]);
        }
    }
}
