// source: NVIDIA/Fuser#5448, 2025-10-29
// link: https://github.com/NVIDIA/Fuser/pull/5448
// wrong: the loop writes its results over those that the TMA store of the last iteration may still read
// finds: race:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ alignas(128) float data[1024];
    const u32 t = threadIdx.x;
    for (int k = 0; k < 3; k++) {
        for (int i = t; i < 1024; i += 64) data[i] = in[i] + k;
        fence_async();
        __syncthreads();
        if (t == 0) store_tile(&store, 32 * k, 0, data);
        AFTER(if (t == 0) { bulk_commit(); bulk_wait_read<0>(); })
        __syncthreads();
    }
    BEFORE(if (t == 0) bulk_commit();)
    if (t == 0) bulk_wait<0>();
}
