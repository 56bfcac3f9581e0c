// source: deepseek-ai/DeepEP#657, 2026-06-02
// link: https://github.com/deepseek-ai/DeepEP/issues/657
// wrong: with two stages wait_group 1 lets the store of this very stage go on while the next load overwrites it
// finds: race:
// launch: threads=32 target=sm_90a
KERNEL(32) {
    __shared__ alignas(128) float data[2][32];
    __shared__ u64 full[2];
    if (threadIdx.x) return;
    for (int s = 0; s < 2; s++) init(&full[s], 1);
    fence_mbarrier_init();
    for (int i = 0; i < 2; i++) { expect(&full[i], 128); bulk_load(data[i], in + 32 * i, 128, &full[i]); }
    for (int i = 0; i < 6; i++) {
        const int s = i % 2;
        wait(&full[s], i / 2 & 1);
        bulk_store(out + 32 * i, data[s], 128);
        bulk_commit();
        bulk_wait_read<BEFORE(1) AFTER(0)>();
        if (i + 2 < 6) { expect(&full[s], 128); bulk_load(data[s], in + 32 * (i + 2), 128, &full[s]); }
    }
    bulk_wait<0>();
}
