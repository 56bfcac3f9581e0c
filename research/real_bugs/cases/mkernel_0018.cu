// source: uccl-project/mKernel#18, 2026-05-24
// link: https://github.com/uccl-project/mKernel/pull/18
// wrong: the wait for the last task's store stands at a fixed iteration, too late where K is no multiple of the ring
// finds: race: TMA store
// launch: threads=32 target=sm_90a
KERNEL(32) {
    __shared__ alignas(128) float data[2][1024];
    __shared__ u64 full[2];
    const u32 t = threadIdx.x;
    if (t == 0) { init(&full[0], 1); init(&full[1], 1); fence_mbarrier_init(); }
    __syncwarp();
    for (int task = 0, n = 0; task < 3; task++) {
        for (int k = 0; k < 3; k++, n++) {
            const int slot = n % 2;
            BEFORE(if (t == 0 && k == 1) bulk_wait_read<0>();)
            AFTER(if (t == 0 && k == 0) bulk_wait_read<0>();)
            __syncwarp();
            if (t == 0) { expect(&full[slot], 4096); load(data[slot], &row, 32 * k, 0, &full[slot]); }
            wait(&full[slot], n / 2 % 2);
        }
        for (int i = t; i < 1024; i += 32) data[0][i] = task;
        fence_async();
        __syncwarp();
        if (t == 0) { store_tile(&store, 32 * task, 0, data[0]); bulk_commit(); }
    }
    if (t == 0) bulk_wait<0>();
}
